#[test]
fn show() {
    for f in std::env::var("F").unwrap().split(',') {
        let b = std::fs::read(f).unwrap();
        let t = std::time::Instant::now();
        let d = crate::support::decode(f.rsplit('/').next().unwrap(), &b);
        let e = t.elapsed();
        let n: usize = std::env::var("N").unwrap_or("60".into()).parse().unwrap();
        for p in d.problems.iter().take(n) {
            println!("{p}");
        }
        println!(
            "== {f} objects {} broken {} problems {} {:?} {:.1} MB/s rss {}",
            d.objects.len(),
            d.broken.len(),
            d.problems.len(),
            e,
            b.len() as f64 / 1e6 / e.as_secs_f64(),
            std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmHWM")).unwrap()
        );
    }
}
