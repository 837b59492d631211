import { expect, test } from 'vitest';
import { dealHand, flowHash } from './classifier.ts';

test('OPS-3: a hand depends only on its hash and has distinct cards', () => {
  expect(dealHand(97n, { queues: 5, handSize: 3 })).toEqual([2, 4, 1]);
  expect(dealHand(0n, { queues: 3, handSize: 3 })).toEqual([0, 1, 2]);
  const deck = { queues: 64, handSize: 6 };
  for (let flow = 0; flow < 500; flow += 1) {
    const hand = dealHand(flowHash('schema', `user-${flow}`), deck);
    expect(new Set(hand).size).toBe(6);
    expect(Math.min(...hand)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...hand)).toBeLessThan(64);
  }
});

test('OPS-3: flows spread over all queues and rarely share all of them', () => {
  const deck = { queues: 32, handSize: 4 };
  const hands = Array.from({ length: 2000 }, (_, flow) => dealHand(flowHash('s', `${flow}`), deck));
  const uses = Array.from({ length: 32 }, () => 0);
  for (const card of hands.flat()) uses[card] = (uses[card] ?? 0) + 1;
  // 250 each on average; a deviation of six standard deviations is practically impossible.
  for (const use of uses) expect(Math.abs(use - 250)).toBeLessThan(6 * Math.sqrt(250));
  const [first = [], ...others] = hands;
  const same = others.filter((hand) => hand.every((card) => first.includes(card)));
  expect(same.length).toBeLessThan(5);
});

test('OPS-3: the hash covers schema and distinguisher and equals kube-apiserver’s', () => {
  expect(flowHash('a', 'bc')).not.toBe(flowHash('ab', 'c'));
  // The digest of one zero byte begins with 6e 34 0b 9c ff b3 7a 98, which kube-apiserver reads as
  // little-endian.
  expect(flowHash('', '')).toBe(0x987a_b3ff_9c0b_346en);
});
