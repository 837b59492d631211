/**
 * Reads a whole stream. Undefined if it has more than `bytesMax` bytes; the rest is not read then,
 * and the stream is destroyed.
 */
export async function piecesWithin<Piece extends { readonly length: number }>(
  stream: AsyncIterable<Piece>,
  bytesMax: number,
): Promise<Piece[] | undefined> {
  const pieces: Piece[] = [];
  let bytes = 0;
  // The iterator destroys the stream when the loop exits early.
  for await (const piece of stream) {
    bytes += piece.length;
    if (bytes > bytesMax) return undefined;
    pieces.push(piece);
  }
  return pieces;
}
