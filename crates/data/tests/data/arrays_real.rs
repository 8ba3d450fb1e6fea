//! MNIST and CIFAR-10 as published, where the folder of real data is present. The expected sums and counts were computed with
//! NumPy from the same files; the class counts of MNIST are also in print.

use crate::common::shared;
use posterior_data::{ArrayValues, CifarLabels, ImageSet, ReadOptions, read_cifar, read_idx, read_images};
use std::slice::from_ref;

fn class_counts(labels: &[u32]) -> Vec<usize> {
    let mut counts = vec![0; 10];
    labels.iter().for_each(|label| counts[*label as usize] += 1);
    counts
}

fn bytes(values: &ArrayValues) -> &[u8] {
    let ArrayValues::U8(values) = values else { panic!("{}", values.type_name()) };
    values
}

fn sum(pixels: &[u8]) -> u64 {
    pixels.iter().map(|v| u64::from(*v)).sum()
}

#[test]
fn mnist_is_read_in_full() {
    let Some(folder) = shared("mnist") else { return };
    let cases = [
        (
            "train",
            60_000,
            1_567_298_545,
            27_525,
            [5, 0, 4],
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        ),
        (
            "t10k",
            10_000,
            264_923_200,
            18_454,
            [7, 2, 1],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
    ];
    for (part, count, total, first, labels, classes) in cases {
        let images = folder.join(format!("{part}-images-idx3-ubyte.gz"));
        let label_file = folder.join(format!("{part}-labels-idx1-ubyte.gz"));
        let started = std::time::Instant::now();
        let set =
            ImageSet::read(from_ref(&images), from_ref(&label_file), &ReadOptions::for_arrays()).unwrap();
        println!("{part}: {:.2?}", started.elapsed());
        assert_eq!(set.images.shape(), [count, 28, 28]);
        let pixels = bytes(set.images.values());
        assert_eq!((sum(pixels), sum(&pixels[..784])), (total, first));
        let read = set.labels.unwrap();
        assert_eq!((&read[..3], class_counts(&read)), (&labels[..], classes.to_vec()));
        // Training images with test labels do not go together.
        let other = folder.join(if part == "train" {
            "t10k-labels-idx1-ubyte.gz"
        } else {
            "train-labels-idx1-ubyte.gz"
        });
        let message =
            ImageSet::read(&[images], &[other], &ReadOptions::for_arrays()).unwrap_err().to_string();
        assert!(message.contains("labels up to this file, but"), "{message}");
        assert_eq!(read_idx(&label_file, &ReadOptions::for_arrays()).unwrap().shape(), [count]);
    }
}

#[test]
fn cifar_is_read_in_full() {
    let Some(folder) = shared("cifar10_jpeg") else { return };
    let options = ReadOptions::for_arrays();
    let cases = [
        (
            "data_batch_1.bin.gz",
            8_000,
            [1_028_085_898, 1_006_200_537, 931_163_285],
            [5, 1, 2],
            [809, 805, 765, 821, 757, 838, 828, 825, 767, 785],
            [249, 244],
        ),
        (
            "test_batch.bin.gz",
            5_000,
            [643_713_502, 632_297_025, 587_964_258],
            [3, 8, 1],
            [477, 483, 509, 518, 525, 500, 483, 513, 505, 487],
            [108, 106],
        ),
    ];
    for (file, count, planes, labels, classes, last) in cases {
        let read = read_cifar(&folder.join(file), CifarLabels::Ten, &options).unwrap();
        assert_eq!(read.images.shape(), [count, 3, 32, 32]);
        let pixels = bytes(read.images.values());
        let found: Vec<u64> = (0..3).map(|c| pixels.chunks(1024).skip(c).step_by(3).map(sum).sum()).collect();
        assert_eq!((&found[..], &pixels[pixels.len() - 2..]), (&planes[..], &last[..]), "{file}");
        let wide: Vec<u32> = read.labels.iter().map(|l| u32::from(*l)).collect();
        assert_eq!((&wide[..3], class_counts(&wide)), (&labels[..], classes.to_vec()), "{file}");
        assert_eq!(read_images(&folder.join(file), &options).unwrap(), read.images);
    }
    let both = cases.map(|case| folder.join(case.0));
    let set = ImageSet::read(&both, &[], &options).unwrap();
    assert_eq!((set.images.examples(), set.labels.unwrap().len()), (13_000, 13_000));
}
