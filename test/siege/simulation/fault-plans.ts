import { type Random, randomOf } from '@wheelhouse/machinery';
import { type FaultPlan, World } from './world.ts';

/**
 * More than the number of opportunities for a fault in a history; prime, so that all are reached.
 */
const opportunitiesMax = 4099;
/** Spreads neighboring seeds over a history. */
const stride = 1_597;

/**
 * The world of a seed. Histories of even seeds are storms, in which each fault happens with its own
 * probability. Those of odd seeds enumerate the opportunities: 4,099 consecutive seeds make the
 * same choices up to their single fault, each at the next opportunity, so that each call of the
 * store fails in each way, and the process is killed at each step.
 */
export function worldOf(seed: number): World {
  const hostSeed = seed ^ 0x5bd1_e995;
  if (seed % 2 === 0) {
    const random = randomOf(seed);
    return new World({ random, hostSeed, plan: storm(random) });
  }
  const number = (seed - 1) / 2;
  const script = Math.floor(number / opportunitiesMax);
  const at = (number * stride) % opportunitiesMax;
  return new World({ random: randomOf(script), hostSeed: script, plan: oneFault(at) });
}

function storm(random: Random): FaultPlan {
  return { strikes: (probability) => random.chance(probability) };
}

function oneFault(at: number): FaultPlan {
  let opportunities = 0;
  return {
    strikes: () => {
      opportunities += 1;
      return opportunities === at;
    },
  };
}
