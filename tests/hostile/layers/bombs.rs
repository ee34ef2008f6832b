//! Layers of few bytes that become many: inodes, memory, disk or work. A daemon unpacks them, and its memory is measured.

use super::archive::{DIRECTORY, FILE, Header, Image, Layer, directory, file, gzip, noise, pax, tar, with_path, zstd};
use super::store::{Registry, Victim};
use std::fs::File;
use std::io::Write;

/// 400 entries, each 250 directories deep, of which none has an entry: 100,000 inodes from less than 10 KB.
fn deep_and_implicit(count: usize) -> Layer {
    let entries: Vec<Vec<u8>> =
        (0..count).map(|index| with_path(&format!("{index}{}/f", "/directory".repeat(250)), &file("f", b""))).collect();
    Layer::of(&entries)
}

#[test]
fn implicit_directories_end_at_their_limit() {
    let registry = Registry::of(Image::of(&[deep_and_implicit(400)]));
    let victim = Victim::with(&format!("registries: [{{host: '{}', http: true}}]\n", registry.host()));
    let layer = deep_and_implicit(400);
    assert!(layer.bytes.len() < 16 << 10, "{} bytes", layer.bytes.len());
    let limit = "more than 10000 directories without their own entry, the limit of images.limits.implicitDirectories";
    assert!(victim.refuses(&[layer]).contains(limit));
    assert!(victim.refuses_pull(&registry).contains(limit));
    // What a compressed archive has is unpacked before it is known whose layers they are.
    let archive = victim.host().path("hostile.tar.gz");
    Image::of(&[deep_and_implicit(400)]).write(&archive, super::store::NAME);
    let reason = victim.refuses_archive(archive.to_str().unwrap());
    assert!(reason.contains(limit), "{reason}");
    // The preload directory is another way in.
    Image::of(&[deep_and_implicit(400)]).write(&victim.host().path("preload/hostile.tar"), super::store::NAME);
    crate::support::eventually("the archive to be refused", || {
        let log = victim.host().daemon_log();
        let refusal = log.lines().find(|line| line.contains("preload/hostile.tar") && line.contains(limit)).map(str::to_owned);
        refusal.ok_or(log)
    });
}

#[test]
fn paths_in_memory_end_at_limit() {
    // 40 MB of paths, which repeat themselves.
    let below = format!("{}/", "p".repeat(250)).repeat(15);
    let entries: Vec<Vec<u8>> = (0..11_000).map(|index| with_path(&format!("{below}{index}"), &directory("d"))).collect();
    let reason = Victim::new().refuses(&[Layer::of(&entries)]);
    assert!(reason.contains("more than 32 MiB of memory for paths of directories"), "{reason}");
}

#[test]
fn zeros_end_at_ratio_whatever_compressed_them() {
    let victim = Victim::new();
    let zeros = vec![0; 16 << 20];
    let header = Header { path: "zeros", size: 3 << 30, ..Header::default() }.bytes();
    // 3 GiB in members of 16 MiB, and as a single frame of zstd.
    let members = [gzip(&header), gzip(&zeros).repeat(192)].concat();
    let mut frame = zstd::Encoder::new(Vec::new(), 1).unwrap();
    frame.write_all(&header).unwrap();
    (0..192).for_each(|_| frame.write_all(&zeros).unwrap());
    for bytes in [members, frame.finish().unwrap()] {
        assert!(bytes.len() < 4 << 20, "{} bytes", bytes.len());
        let reason = victim.refuses(&[Layer::raw(bytes)]);
        assert!(reason.contains("more than 200 times its compressed size, the limit of images.limits.ratio"), "{reason}");
    }
    // The archive itself is a stream, too, of which nothing needs to be a layer.
    let archive = victim.host().path("text.tar.gz");
    let mut whole = flate2::write::GzEncoder::new(File::create(&archive).unwrap(), flate2::Compression::best());
    whole.write_all(&Header { path: "text", size: 3 << 30, ..Header::default() }.bytes()).unwrap();
    let text = vec![b'x'; 16 << 20];
    (0..32).for_each(|_| whole.write_all(&text).unwrap());
    whole.finish().unwrap();
    let reason = victim.refuses_archive(archive.to_str().unwrap());
    assert!(reason.contains("images.limits.ratio"), "{reason}");
}

#[test]
fn content_behind_end_of_archive_is_refused() {
    let victim = Victim::new();
    let archive = tar(&[file("f", b"content")]);
    let zeros = [archive.clone(), vec![0; 200 << 20]].concat();
    let garbage = [archive.clone(), noise(2 << 20)].concat();
    for bytes in [gzip(&zeros), zstd(&zeros), gzip(&garbage), garbage, zeros] {
        let reason = victim.refuses(&[Layer::raw(bytes)]);
        assert!(reason.contains("more than 1048576 bytes after its end"), "{reason}");
    }
    // What fills up the last record of a tape is none of it.
    let padded = [archive, vec![0; 500 << 10]].concat();
    victim.takes(&[Layer { bytes: gzip(&padded), diff_id: podstead::container::digest::Digest::of(&padded) }]);
}

#[test]
fn empty_members_or_frames_take_no_memory() {
    let victim = Victim::new();
    let archive = tar(&[file("f", b"content")]);
    let diff_id = podstead::container::digest::Digest::of(&archive);
    let members = [gzip(&archive), gzip(b"").repeat(200_000)].concat();
    victim.takes(&[Layer { bytes: members, diff_id }]);
    // RFC 8878, 3.1.2: a skippable frame has a magic number and a size, here of nothing.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0].repeat(1 << 20);
    victim.takes(&[Layer { bytes: [zstd(&archive), skippable].concat(), diff_id }]);
}

#[test]
fn zstd_window_beyond_limit_is_refused() {
    let victim = Victim::new();
    // RFC 8878, 3.1.1.1: no content size, no checksum; a window of 2^31, 2^27 bytes; one raw block of one byte.
    for descriptor in [21 << 3, 17 << 3] {
        let frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor, 0x09, 0x00, 0x00, b'x'];
        let reason = victim.refuses(&[Layer::raw(frame)]);
        assert!(reason.contains("window of more than 64 MiB, the limit of images.limits.zstdWindow"), "{reason}");
    }
}

#[test]
fn headers_without_end_are_refused() {
    let victim = Victim::new();
    let header = |kind| Header { kind, path: "header", size: 7 << 30, ..Header::default() }.bytes();
    // PAX records, PAX records for all entries, a long name and a long link of GNU.
    for kind in [b'x', b'g', b'L', b'K'] {
        let bytes = [header(kind), vec![b'1'; 100 << 20]].concat();
        let reason = victim.refuses(&[Layer::raw(zstd(&bytes))]);
        assert!(reason.contains("archive header"), "{}: {reason}", char::from(kind));
    }
}

#[test]
fn extended_attributes_end_at_their_limits() {
    let victim = Victim::with("images: {limits: {xattrSize: 1Mi}}\n");
    let flood = |names: usize, value: &[u8]| {
        let names: Vec<String> = (0..names).map(|index| format!("SCHILY.xattr.user.{index}")).collect();
        let records: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), value)).collect();
        pax(&records)
    };
    let reason = victim.refuses(&[Layer::of(&[flood(20_000, b""), file("f", b"")])]);
    assert!(reason.contains("entry has more than 64 KiB of extended attributes"), "{reason}");
    // A file of ext4 takes up to 4 KiB of them.
    let entries: Vec<Vec<u8>> = (0..600).flat_map(|index| [flood(10, &[b'v'; 200]), file(&format!("f{index}"), b"")]).collect();
    let reason = victim.refuses(&[Layer::of(&entries)]);
    assert!(reason.contains("layer has more than 1 MiB of extended attributes"), "{reason}");
}

#[test]
fn file_of_holes_beyond_limit_is_refused() {
    let sparse = |size: &str| {
        let records: [(&str, &[u8]); 4] = [
            ("GNU.sparse.major", b"1"),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.name", b"holes"),
            ("GNU.sparse.realsize", size.as_bytes()),
        ];
        // A map without a region.
        let mut map = b"0\n".to_vec();
        map.resize(512, 0);
        vec![pax(&records), file("holes", &map)]
    };
    let victim = Victim::new();
    let reason = victim.refuses(&[Layer::of(&sparse("2199023255552"))]);
    assert!(reason.contains("sparse file of more than 1024 GiB, the limit of images.limits.fileSize"), "{reason}");
    victim.takes(&[Layer::of(&sparse("1073741824"))]);
}

#[test]
fn file_claiming_too_much_is_refused() {
    let victim = Victim::with("images: {limits: {unpackedSize: 1Gi}}\n");
    let header = Header { kind: FILE, path: "claim", size: 7 << 30, ..Header::default() }.bytes();
    let reason = victim.refuses(&[Layer::raw(gzip(&header))]);
    assert!(reason.contains("more than 1 GiB after decompression"), "{reason}");
    assert!(victim.refuses(&[Layer::raw(gzip(&header[..300]))]).contains("ends in the middle"), "a header that is cut off");
}

#[test]
fn archive_entries_are_bounded_outside_of_layers() {
    let victim = Victim::with("images: {limits: {entries: 1000}}\n");
    let archive = victim.host().path("links.tar.gz");
    let header = |index: usize| Header { kind: DIRECTORY, path: &format!("d{index}"), ..Header::default() }.bytes();
    std::fs::write(&archive, gzip(&tar(&(0..1001).map(header).collect::<Vec<_>>()))).unwrap();
    let reason = victim.refuses_archive(archive.to_str().unwrap());
    assert!(reason.contains("more than 1000 files and directories"), "{reason}");
}
