import type { ResourceDef } from '@wheelhouse/kinds';
import { DecodeError } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { type Collection, filled } from './growth-shapes.ts';
import {
  exampleOf,
  type RuleForm,
  ruledCollections,
  ruledKinds,
  ruleForms,
  rulePasses,
  writes,
} from './rule-cases.ts';
import { rulesPart } from './rules.ts';

/** Items of a small list, and of a large one: more than a selector may have. */
const [few, many] = [5, 1205];

/** The number of errors and of steps of the rules for `count` invalid items. */
function validated(
  def: ResourceDef,
  collection: Collection,
  of: { form: RuleForm; count: number },
) {
  const { form, count } = of;
  const body = filled(exampleOf(def), collection, { variant: 'invalid', count });
  let counts = { errors: 0, steps: 0 };
  for (const [pass, begin] of rulePasses(def, body, form)) {
    const work = begin();
    if (pass === 'validation') counts = countsOf(work);
    else if (isGenerator(work)) countsOf(work);
  }
  return counts;
}

const isGenerator = (work: unknown): work is Generator<void, unknown> =>
  typeof work === 'object' && work !== null && 'next' in work;

function countsOf(work: unknown): { readonly errors: number; readonly steps: number } {
  for (let steps = 1; ; steps += 1) {
    const step = isGenerator(work) ? work.next() : { done: true, value: work };
    if (step.done === true) return { errors: Number(step.value), steps };
  }
}

test.each(ruledKinds.map((def) => [def.kind, def] as const))(
  'TRUST-2: the rules of %s take steps for each of its collections',
  (_, def) => {
    const undivided: string[] = [];
    for (const collection of ruledCollections(def)) {
      for (const form of ruleForms) {
        if (!writes(form, collection)) continue;
        try {
          const large = validated(def, collection, { form, count: many });
          if (large.errors < many * 0.9) continue;
          const small = validated(def, collection, { form, count: few });
          if (large.steps - small.steps >= 5) continue;
          undivided.push(`${form}: ${collection.steps.join('.')}`);
        } catch (error) {
          // Some lists cannot have invalid items.
          if (!(error instanceof DecodeError)) throw error;
        }
      }
    }
    expect(undivided).toEqual([]);
  },
);

test('TRUST-2: the longest step of the rules is measured in CPU time of the main thread', async () => {
  const { longest } = await rulesPart.run({ seed: 1, rounds: 1, log: () => {} });
  expect(longest).toMatch(/^\d+\.\d ms \(\w+/);
});
