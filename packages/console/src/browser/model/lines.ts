import type { BytesReader } from './ports.ts';

/** A line longer than this ends the stream: no event is, and memory is not the server's to fill. */
const lineCharactersMax = 64 * 1024 * 1024;

/**
 * The lines of a stream, without their ends. A line that the stream breaks off in is dropped: a cut
 * connection leaves one. Throws RangeError for a line that is too long.
 */
export async function* linesOf(reader: BytesReader): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const text = pending + decoder.decode(value, { stream: true });
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      yield text.slice(from, end);
      from = end + 1;
    }
    pending = text.slice(from);
    if (pending.length > lineCharactersMax) throw new RangeError('a line of the watch is too long');
  }
}
