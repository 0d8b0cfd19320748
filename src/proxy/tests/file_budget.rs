//! What proxies share, and what each has whatever the others take.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::stage::{PATIENCE, Stage, echo, until};
use crate::policy::Host;
use crate::proxy::file_budget::{FileBudget, Share};
use crate::proxy::{Bounds, Failure, Resolve as _, SystemResolver};

/// Room for one connection, if there is any now.
fn room(share: &Share) -> Option<OwnedSemaphorePermit> {
    match pin!(share.room()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(room) => room,
        Poll::Pending => None,
    }
}

/// All the room that there is for a proxy now.
fn takes_all(share: &Share) -> Vec<OwnedSemaphorePermit> {
    (0..share.most()).map_while(|_| room(share)).collect()
}

#[test]
fn whatever_others_take_a_proxy_has_the_connections_that_are_kept_for_it() {
    for (limit, kept) in [(64, 1), (256, 4), (1024, 16), (1 << 20, 16)] {
        let files = FileBudget::within(limit);
        let hogs: Vec<Share> = (0..7).map(|_| files.share(1 << 20)).collect();
        let held: Vec<_> = hogs.iter().map(takes_all).collect();
        let late = files.share(256);
        let got = takes_all(&late);
        assert!(got.len() >= kept, "{} of {kept} with {limit} files", got.len());
        assert!(hogs.iter().all(Share::is_exhausted) || limit > 1024, "{limit} files");
        drop(held);
    }
}

#[test]
fn all_proxies_together_have_at_most_half_of_the_files_of_the_process() {
    for limit in [8, 9, 20, 64, 100, 256, 1000, 1024, 4096, 1 << 20] {
        let files = FileBudget::within(limit);
        let shares: Vec<Share> = (0..1_000).map(|_| files.share(256)).collect();
        let held: Vec<_> = shares.iter().map(takes_all).collect();
        let connections: usize = held.iter().map(Vec::len).sum();
        assert!(connections * 2 <= limit / 2, "{connections} with {limit} files");
        // The twin: it is used to the last one.
        assert_eq!(connections, (limit / 2).min(8192) / 2, "{limit} files");
        assert!(
            held.iter().all(|held| held.len() <= (limit / 8).max(1)),
            "{limit} files"
        );
    }
}

#[test]
fn what_was_kept_for_a_proxy_that_has_ended_is_kept_for_the_next() {
    let files = FileBudget::within(64);
    let shares: Vec<Share> = (0..8).map(|_| files.share(256)).collect();
    let held: Vec<_> = shares.iter().map(takes_all).collect();
    let late = files.share(256);
    assert!(room(&late).is_none());
    drop(held);
    drop(shares);
    let hogs = [files.share(256), files.share(256)];
    let _held = hogs.each_ref().map(takes_all);
    assert!(room(&late).is_none());
    assert!(room(&files.share(256)).is_some());
}

#[test]
fn whoever_has_nothing_of_its_own_gets_what_is_given_back_by_turns() {
    let files = FileBudget::within(64);
    let hogs: Vec<Share> = (0..8).map(|_| files.share(256)).collect();
    let mut held: Vec<_> = hogs.iter().flat_map(takes_all).collect();
    let late = files.share(256);
    let mut waits = pin!(late.room());
    let mut task = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut task).is_pending());
    // Somebody else who comes later waits behind it.
    let mut later = pin!(hogs[0].room());
    assert!(later.as_mut().poll(&mut task).is_pending());
    drop(held.remove(1));
    let got = waits.as_mut().poll(&mut task);
    assert!(matches!(got, Poll::Ready(Some(_))));
    assert!(later.as_mut().poll(&mut task).is_pending());
}

/// A tunnel of this proxy, if it is let in within a while.
async fn tunnel(stage: &Stage, port: u16, patience: Duration) -> Option<TcpStream> {
    let mut stream = stage.connect().await;
    let request = format!("CONNECT open.example:{port} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let opened = timeout(patience, until(&mut stream, b"\r\n\r\n")).await;
    opened.is_ok().then_some(stream)
}

#[tokio::test]
async fn two_proxies_that_hold_all_they_can_leave_a_third_its_own_connections() {
    let port = echo().await;
    // Sixteen connections in all: eight that are shared, and one for each of eight proxies.
    let files = FileBudget::within(64);
    let [one, other, third] = [(); 3].map(|()| Stage::start_within(&files, Bounds::default()));
    let mut held = Vec::new();
    for (hog, most) in [(&one, 8), (&other, 2)] {
        for _ in 0..most {
            held.push(tunnel(hog, port, PATIENCE).await.unwrap());
        }
        assert!(tunnel(hog, port, Duration::from_millis(100)).await.is_none());
    }
    let reached = tunnel(&third, port, PATIENCE).await;
    assert!(reached.is_some());
    // That was its own one; the next is whoever's ends first.
    assert!(tunnel(&third, port, Duration::from_millis(100)).await.is_none());
    held.truncate(7);
    drop(reached);
    assert!(tunnel(&third, port, PATIENCE).await.is_some());
}

#[test]
fn a_proxy_whose_lookups_hang_leaves_others_theirs() {
    let folder = tempfile::tempdir().unwrap();
    // Whoever opens it waits until somebody would write.
    let (hangs, hosts) = (folder.path().join("hangs"), folder.path().join("hosts"));
    mkfifo(&hangs, Mode::S_IRWXU).unwrap();
    std::fs::write(&hosts, "192.0.2.7 a.example.org\n").unwrap();
    let Host::Name(name) = Host::parse("a.example.org").unwrap() else {
        panic!("a name");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (hung, found) = runtime.block_on(async {
        let slow = Arc::new(SystemResolver::reading(hangs.clone(), Duration::from_millis(200)));
        let mut asked = JoinSet::new();
        for _ in 0..20 {
            let (slow, name) = (Arc::clone(&slow), name.clone());
            asked.spawn(async move { slow.resolve(&name).await });
        }
        let mut hung = asked.join_all().await;
        // Its threads still hang.
        hung.push(slow.resolve(&name).await);
        let quick = SystemResolver::reading(hosts, PATIENCE);
        (hung, quick.resolve(&name).await)
    });
    // Nobody waits for the threads; a writer lets them end.
    runtime.shutdown_background();
    let _writer = std::fs::OpenOptions::new().write(true).open(hangs).unwrap();
    assert_eq!(hung, vec![Err(Failure::ResolveTime); 21]);
    assert_eq!(found, Ok(vec!["192.0.2.7".parse::<IpAddr>().unwrap()]));
}
