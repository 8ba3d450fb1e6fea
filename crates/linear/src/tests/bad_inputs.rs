//! What feature maps refuse.

use crate::LinearError;
use crate::features::DenseFeatures;
use faer::Mat;

#[test]
fn features() {
    assert!(matches!(DenseFeatures::new(Mat::zeros(4, 0), 2), Err(LinearError::Empty { .. })));
    assert!(matches!(DenseFeatures::new(Mat::zeros(4, 1), 0), Err(LinearError::Empty { .. })));
    assert!(matches!(DenseFeatures::new(Mat::zeros(5, 1), 2), Err(LinearError::Shape { .. })));
    let nan = Mat::from_fn(2, 1, |_, _| f64::NAN);
    assert!(matches!(DenseFeatures::new(nan, 2), Err(LinearError::NotFinite { .. })));
}
