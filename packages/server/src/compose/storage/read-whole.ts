/** All bytes of a stream; above `bytesMax` it is destroyed, and what `tooLong` makes is thrown. */
export async function readWhole(
  stream: AsyncIterable<unknown>,
  { bytesMax, tooLong }: { readonly bytesMax: number; readonly tooLong: () => Error },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of stream) {
    length += (chunk as Buffer).length;
    if (length > bytesMax) throw tooLong();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
