import { createHash } from 'node:crypto';

/** The number that tells a flow from others: the first eight bytes of a digest of both names. */
export function flowHash(schema: string, distinguisher: string): bigint {
  const digest = createHash('sha256').update(`${schema}\0${distinguisher}`).digest();
  return digest.readBigUInt64LE(0);
}

/**
 * The queues a flow may use: `handSize` different ones of `queues`, dealt by its hash as cards are
 * off a deck. Two flows share all their queues only by rare chance, so that one that fills its own
 * leaves the other a way through.
 *
 * Dealing 3 of 5 with hash 97: 97 = 19*5 + 2, 19 = 4*4 + 3, 4 = 1*3 + 1 give the places 2, 3 and 1
 * among the cards still there: card 2, then of 0 1 3 4 the last, 4, then of 0 1 3 the card 1.
 */
export function dealHand(
  hash: bigint,
  { queues, handSize }: { readonly queues: number; readonly handSize: number },
): readonly number[] {
  const places: number[] = [];
  let rest = hash;
  for (let dealt = 0; dealt < handSize; dealt += 1) {
    const left = BigInt(queues - dealt);
    places.push(Number(rest % left));
    rest /= left;
  }
  return places.map((place, index) => {
    let card = place;
    for (let before = index - 1; before >= 0; before -= 1) {
      if (card >= (places[before] ?? 0)) card += 1;
    }
    return card;
  });
}
