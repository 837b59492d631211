import { closeSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Revision } from '../contract.ts';
import {
  createRevisionOfRecord,
  damaged,
  decodeFrame,
  type Frame,
  isDeletion,
  keyOfRecord,
} from './frame.ts';
import type { LogIndex } from './log-index.ts';
import { openSegmentFile, readHeader, Segment, segmentHeaderBytes } from './segment.ts';

const logName = /^log\.(\d{1,15})$/;

/** The path of a segment. */
export const segmentPath = (directory: string, sequence: number): string =>
  join(directory, `log.${sequence}`);

/**
 * Replays a log into an index (STORE-1). Writes that a crash cut off at its end are ignored;
 * acknowledged writes that cannot be read are damage.
 *
 * @returns its segments, oldest first, at least one
 * @throws StoreError `damaged`
 */
export function recover(directory: string, index: LogIndex): Segment[] {
  const segments = openSegments(directory);
  try {
    const replay: Replay = { index, newest: 0, revision: 0, compacted: 0 };
    for (const [position, segment] of segments.entries()) {
      replaySegment(replay, segment, segments[position + 1]);
    }
    if (replay.newest > replay.revision) {
      throw damaged(`the log has records after revision ${replay.revision}`);
    }
    index.revision = replay.revision;
    index.compact(replay.compacted);
    index.drop();
    index.sort();
    return segments;
  } catch (error) {
    for (const segment of segments) segment.close();
    throw error;
  }
}

interface Replay {
  readonly index: LogIndex;
  /** The highest revision of any record. */
  newest: Revision;
  /** State after the last frame. */
  revision: Revision;
  compacted: Revision;
}

/**
 * All segments that belong to the log. Files before the first one are leftovers, which are removed.
 */
function openSegments(directory: string): Segment[] {
  const sequences = sequencesIn(directory);
  const newest = sequences.at(-1);
  if (newest === undefined) throw damaged(`${directory} has no log`);
  const last = openSegment(directory, newest);
  const segments = [last];
  try {
    const mark = last.recoverMark(last.read(0, segmentHeaderBytes));
    const first = Math.max(last.header.first, mark?.first ?? 0);
    for (const leftover of sequences.filter((sequence) => sequence < first)) {
      rmSync(segmentPath(directory, leftover), { force: true });
    }
    for (let sequence = newest - 1; sequence >= first; sequence--) {
      if (!sequences.includes(sequence)) {
        throw damaged(`${segmentPath(directory, sequence)} is missing`);
      }
      segments.unshift(openSegment(directory, sequence));
    }
    return segments;
  } catch (error) {
    for (const segment of segments) segment.close();
    throw error;
  }
}

function sequencesIn(directory: string): number[] {
  const files = readdirSync(directory).flatMap((name) => {
    const match = logName.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return files.sort((left, right) => left - right);
}

function openSegment(directory: string, sequence: number): Segment {
  const path = segmentPath(directory, sequence);
  const descriptor = openSegmentFile(path);
  try {
    const header = readHeader(path, descriptor);
    if (header.sequence !== sequence) throw damaged(`${path} contains log.${header.sequence}`);
    return new Segment({ path, descriptor, header });
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function replaySegment(replay: Replay, segment: Segment, next: Segment | undefined): void {
  const { seed, size } = segment.header;
  const bytes = segment.read(0, size);
  const end = next?.header.previousEnd ?? size;
  for (;;) {
    const frame = segment.end < end ? decodeFrame(bytes, segment.end, seed) : undefined;
    if (frame === undefined) break;
    replayFrame(replay, { frame, bytes, segment });
    segment.end = frame.end;
  }
  const durable = next?.header.previousEnd ?? segment.recoverMark(bytes)?.end ?? 0;
  if (segment.end < durable || (next !== undefined && segment.end > durable)) {
    throw damaged(`${segment.path} cannot be read after byte ${segment.end}`);
  }
}

function replayFrame(
  replay: Replay,
  found: { readonly frame: Frame; readonly bytes: Buffer; readonly segment: Segment },
): void {
  const { frame, bytes, segment } = found;
  const { index } = replay;
  for (const { revision, offset, size } of frame.records) {
    index.add({
      key: keyOfRecord(bytes, offset),
      revision,
      createRevision: createRevisionOfRecord(bytes, offset),
      deleted: isDeletion(bytes, offset),
      segment,
      offset,
      size,
    });
    if (revision > replay.newest) replay.newest = revision;
  }
  replay.revision = frame.revision;
  replay.compacted = frame.compacted;
  index.compact(frame.compacted);
  index.drop();
}
