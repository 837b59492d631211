import { type Frame, uint32 } from './frame-reader.ts';
import { ConnectionError, errorCode, frameBytesMax, setting, windowBytesMax } from './protocol.ts';

/** What a client's SETTINGS frame changes for us; undefined where it says nothing. */
export interface PeerSettings {
  headerTableBytes: number | undefined;
  initialWindow: number | undefined;
  frameBytesMax: number | undefined;
}

const entryBytes = 6;
const frameBytesCeiling = 0xffffff;

/** Reads the payload of a SETTINGS frame; throws a ConnectionError for values out of range. */
export function readSettings({ bytes, start, end }: Frame): PeerSettings {
  if ((end - start) % entryBytes !== 0) {
    throw new ConnectionError(errorCode.frameSizeError, 'SETTINGS of a wrong length');
  }
  const read: PeerSettings = {
    headerTableBytes: undefined,
    initialWindow: undefined,
    frameBytesMax: undefined,
  };
  for (let at = start; at < end; at += entryBytes) {
    const name = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
    const value = uint32(bytes, at + 2);
    if (name === setting.headerTableSize) {
      // The smallest counts: a table that shrinks and grows again in one frame has been emptied.
      read.headerTableBytes = Math.min(read.headerTableBytes ?? value, value);
    } else if (name === setting.enablePush && value > 1) throw badSetting('ENABLE_PUSH');
    else if (name === setting.initialWindowSize) {
      if (value > windowBytesMax) {
        throw new ConnectionError(errorCode.flowControlError, 'INITIAL_WINDOW_SIZE out of range');
      }
      read.initialWindow = value;
    } else if (name === setting.maxFrameSize) {
      if (value < frameBytesMax || value > frameBytesCeiling) throw badSetting('MAX_FRAME_SIZE');
      read.frameBytesMax = value;
    }
  }
  return read;
}

function badSetting(name: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, `${name} out of range`);
}
