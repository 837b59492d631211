// Random CEL expressions as rules of custom kinds and of policies: errors of their compilation,
// estimated costs, values, errors of their evaluation, and limits.
import { costRounds } from './expressions/cost.mjs';
import { definitionRounds } from './expressions/definitions.mjs';
import { limitRounds } from './expressions/limits.mjs';
import { createOutcomes } from './expressions/outcomes.mjs';
import { policyRounds } from './expressions/policies.mjs';

/**
 * @param options as for `builtinRounds`, and `compared`, which reports a comparison
 * @returns a function that runs one round: about ten expressions in one place
 */
export async function expressionRounds({ both, random, compared }) {
  const outcomes = createOutcomes({ both, compared });
  const options = { both, random, outcomes };
  const rounds = {
    ...definitionRounds(options),
    ...costRounds(options),
    ...policyRounds(options),
    ...limitRounds(options),
  };
  const places = process.env.PEERS_PLACES?.split(',') ?? Object.keys(rounds);
  // Boundaries take many requests.
  const drawn = places.filter((place) => place !== 'limits' || places.length === 1);
  return async (round) => {
    const isSlow = places.includes('limits') && round % 40 === 39;
    await rounds[isSlow ? 'limits' : random.pick(drawn)](round);
  };
}
