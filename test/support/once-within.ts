/**
 * Number of rounds before a bound counts as violated, because the machine may be busy during some.
 */
const roundsMax = 5;

/**
 * Whether a round takes less than `ms` by its own measure. Repeats rounds until one does, up to
 * five times, so that bounds of the specification can be tested on a busy machine.
 * @param round resolves with its duration in milliseconds
 */
export async function onceWithin(
  ms: number,
  round: (index: number) => Promise<number>,
): Promise<boolean> {
  for (let index = 0; index < roundsMax; index += 1) {
    if ((await round(index)) < ms) return true;
  }
  return false;
}
