//! A server small enough to be seen through, which uses the runtime as a broker does: shard 0 owns a log, appends, syncs,
//! then answers; file ranges are sent from the file; a connection that asks for it moves to shard 1, which only reads.
//!
//! Log entries: length (4 bytes), CRC-32C of the data (4 bytes), data.
//! Requests: `P` data: append it, answer its end. `F` position (8 bytes): answer all that is durable from there.
//! `M`: answer nothing, and go on at the other shard.

use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};

use onrush::base::{Position, Trouble};
use onrush::runtime::mailbox::{Receiver, Sender};
use onrush::runtime::{File, Lane, Listener, Open, Runtime, SendQueue, SendSegment, Stream};

use crate::client::read_frame;

const LOG: &str = "/data/log";
const ENTRY_HEADER_BYTES: usize = 8;

/// What goes from shard 0 to shard 1 with a connection.
pub struct Moved<R: Runtime> {
    parcel: R::Parcel,
    received: BytesMut,
    log: <R::File as File>::Shared,
    durable_end: u64,
}

/// Where the whole entries at the beginning of a log end.
pub fn valid_end(log: &[u8]) -> usize {
    let mut end = 0;
    while let Some((header, rest)) = log[end..].split_first_chunk::<ENTRY_HEADER_BYTES>() {
        let [length, checksum] =
            [0, 4].map(|at| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes are four")));
        match rest.get(..length as usize) {
            Some(data) if length > 0 && crc32c::crc32c(data) == checksum => {
                end += ENTRY_HEADER_BYTES + data.len()
            }
            _ => break,
        }
    }
    end
}

/// The data of all entries.
pub fn entries(mut log: &[u8]) -> Vec<Bytes> {
    let mut entries = Vec::new();
    while valid_end(log) > 0 {
        let length = u32::from_be_bytes(log[..4].try_into().expect("an entry has a header")) as usize;
        entries.push(Bytes::copy_from_slice(&log[ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + length]));
        log = &log[ENTRY_HEADER_BYTES + length..];
    }
    entries
}

/// Shard 0: recovers the log, then serves one connection after the other. Ends when the disk fails.
pub async fn own<R: Runtime>(runtime: R, port: u16, readers: Sender<Moved<R>>) -> Result<(), Trouble> {
    let log = recover(&runtime).await?;
    let mut end = log.bytes()?;
    let mut listener = runtime.listen(([0, 0, 0, 0], port).into())?;
    loop {
        let mut stream = listener.accept().await?;
        let mut received = BytesMut::new();
        while let Ok(Some(request)) = read_frame(&mut stream, &mut received).await {
            let answered = match request.first() {
                Some(b'P') => {
                    let mut entry = BytesMut::new();
                    entry.put_u32(request.len() as u32 - 1);
                    entry.put_u32(crc32c::crc32c(&request[1..]));
                    log.write_at(Position(end), &[entry.freeze(), request.slice(1..)]).await?;
                    log.sync().await?;
                    end += (ENTRY_HEADER_BYTES + request.len() - 1) as u64;
                    answer(&mut stream, &end.to_be_bytes()).await
                }
                Some(b'F') => answer_range(&mut stream, &log, &request, end).await,
                _ => {
                    let (parcel, log) = (stream.detach()?, log.share()?);
                    let sent = readers.try_send(Moved { parcel, received, log, durable_end: end });
                    assert!(sent.is_ok(), "the reading shard keeps up");
                    break;
                }
            };
            if answered.is_err() {
                break;
            }
        }
    }
}

/// Shard 1: serves reads on connections that were moved to it.
pub async fn read<R: Runtime>(runtime: R, moved: Receiver<Moved<R>>) {
    while let Some(Moved { parcel, mut received, log, durable_end }) = moved.receive().await {
        let log = runtime.adopt_file(log);
        let Ok(mut stream) = runtime.adopt_stream(parcel) else { continue };
        runtime.spawn(Lane::Data, async move {
            while let Ok(Some(request)) = read_frame(&mut stream, &mut received).await {
                if answer_range(&mut stream, &log, &request, durable_end).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn recover<R: Runtime>(runtime: &R) -> Result<R::File, Trouble> {
    let path = Path::new(LOG);
    let folder = path.parent().expect("the log stands in a folder");
    runtime.create_folder(folder).await?;
    runtime.sync_folder(Path::new("/")).await?;
    let log = match runtime.open(path, Open::Write).await {
        Err(trouble) if trouble.is_not_found() => runtime.open(path, Open::Create).await?,
        opened => opened?,
    };
    // Past the page cache, which may still show what a failed sync of a killed process has not brought to the disk.
    let content = log.read_cold(Position(0), log.bytes()? as usize).await?;
    log.truncate(valid_end(&content) as u64).await?;
    log.sync().await?;
    runtime.sync_folder(folder).await?;
    Ok(log)
}

async fn answer<S: Stream>(stream: &mut S, body: &[u8]) -> Result<(), Trouble> {
    let mut queue = SendQueue::new();
    queue.push(SendSegment::Memory(frame_length(body.len() as u64)));
    queue.push(SendSegment::Memory(Bytes::copy_from_slice(body)));
    stream.send(&mut queue).await
}

async fn answer_range<S: Stream>(
    stream: &mut S,
    log: &S::File,
    request: &[u8],
    durable_end: u64,
) -> Result<(), Trouble> {
    let position = u64::from_be_bytes(request[1..9].try_into().expect("a fetch names a position"));
    let bytes = durable_end - position;
    let mut queue = SendQueue::new();
    queue.push(SendSegment::Memory(frame_length(bytes)));
    queue.push(SendSegment::FileRange { file: log.clone(), position: Position(position), bytes });
    stream.send(&mut queue).await
}

fn frame_length(bytes: u64) -> Bytes {
    Bytes::copy_from_slice(&u32::try_from(bytes).expect("answers are small").to_be_bytes())
}
