import { random } from './host.ts';

const attemptsMax = 5;
const pauseFactor = 1.5;
const pauseJitter = 0.2;

/**
 * Returns the pause in milliseconds before the next attempt to call a webhook, as in
 * kube-apiserver: half as long again as the previous one, plus up to 20 % at random. Undefined
 * after the fifth attempt, which is the last.
 * @param attempts the number of failed attempts
 */
export function retryPauseMs(firstPauseMs: number, attempts: number): number | undefined {
  if (attempts >= attemptsMax) return undefined;
  return firstPauseMs * pauseFactor ** (attempts - 1) * (1 + random() * pauseJitter);
}
