//! The report in a real browser, where one is installed: everything is there, has a size, and nothing is fetched.

use std::{path::PathBuf, process::Command};

/// The first Chromium-like browser on the path.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

/// Appended to the copy of the page under test: writes the measured size of every picture, and the addresses of
/// everything that was loaded, into attributes of the body. (The real page forbids scripts, so the copy has no policy.)
const MEASURE: &str = "<script>addEventListener('load', () => {
  const boxes = [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect());
  const size = b => Math.round(b.width) + 'x' + Math.round(b.height);
  document.body.setAttribute('data-sizes', boxes.map(size).join(' '));
  document.body.setAttribute('data-loaded', performance.getEntriesByType('resource').length);
  document.body.setAttribute('data-overflow', document.documentElement.scrollWidth - innerWidth);
  document.body.setAttribute('data-background', getComputedStyle(document.body).backgroundColor);
});</script>";

fn attribute<'a>(dom: &'a str, name: &str) -> &'a str {
    let start = dom.find(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 2;
    &dom[start..start + dom[start..].find('"').unwrap()]
}

/// The page as a browser of each width sees it, with sizes of pictures (width, height); nothing if there is no browser.
fn look(report: &posterior_report::Report, check: impl Fn(&str, &[(f64, f64)])) {
    let Some(browser) = browser() else {
        posterior_testing::skip("no chromium, chromium-browser or google-chrome on the path");
        return;
    };
    let html = report.to_html();
    let policy_start =
        html.find("<meta http-equiv=\"Content-Security-Policy\"").expect("the page has a policy");
    let policy_end = policy_start + html[policy_start..].find('>').unwrap() + 1;
    let page = format!("{}{}", &html[..policy_start], &html[policy_end..])
        .replace("</body>", &format!("{MEASURE}</body>"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, page).unwrap();
    for width in [1200, 500] {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(&browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},2000"))
            .args(["--virtual-time-budget=5000", "--dump-dom"])
            .arg(format!("file://{}", file.display()))
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let sizes: Vec<(f64, f64)> = attribute(&dom, "data-sizes")
            .split(' ')
            .map(|s| s.split_once('x').unwrap())
            .map(|(w, h)| (w.parse().unwrap(), h.parse().unwrap()))
            .collect();
        assert_ne!(attribute(&dom, "data-background"), "rgba(0, 0, 0, 0)", "the styles did not apply");
        assert!(
            attribute(&dom, "data-overflow").parse::<f64>().unwrap() <= 0.0,
            "sideways scrolling at {width}"
        );
        check(&dom, &sizes);
    }
}

#[test]
fn a_browser_draws_everything_and_fetches_nothing() {
    look(&crate::common::demo(), |dom, sizes| {
        assert!(dom.contains("id=\"section-1\"") && dom.contains("id=\"section-2\""));
        // One of the two drawings of the posterior is hidden; all other pictures are seen.
        assert_eq!(sizes.len(), 13);
        assert_eq!(sizes.iter().filter(|(w, h)| *w == 0.0 && *h == 0.0).count(), 1, "{sizes:?}");
        assert_eq!(sizes.iter().filter(|(w, h)| *w > 250.0 && *h > 100.0).count(), 12, "{sizes:?}");
        assert_eq!(attribute(dom, "data-loaded"), "0");
    });
}

#[test]
fn a_browser_draws_networks_with_their_pixels() {
    look(&crate::common::networks(), |dom, sizes| {
        // Pictures inside the page count as loaded; all of them are data.
        let loaded: usize = attribute(dom, "data-loaded").parse().unwrap();
        assert!(loaded <= dom.matches("href=\"data:image/png;base64,").count());
        let tiles = sizes.iter().filter(|(w, h)| *w > 100.0 && *w < 250.0 && *h > 150.0).count();
        assert_eq!(tiles, 36, "three galleries of twelve: {sizes:?}");
        assert_eq!(
            sizes.iter().filter(|(w, h)| *w > 250.0 && *h > 100.0).count(),
            sizes.len() - 36,
            "{sizes:?}"
        );
    });
}
