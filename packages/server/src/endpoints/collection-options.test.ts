import type { Features } from '@wheelhouse/kinds';
import { dialectOf, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { defaultGates } from '../flags/feature-gates.ts';
import { checkListQuery } from './collection-options.ts';

const dialect = dialectOf('svc');
const without: Features = { ...defaultGates, enabled: () => false };
const allOn: Features = { ...defaultGates, enabled: () => true };

/** The code and the fields of the errors in a query; undefined without errors. */
function problem(query: string, features: Features = defaultGates) {
  try {
    checkListQuery({ dialect, features }, new URLSearchParams(query));
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return [error.code, ...(error.status.details?.causes ?? []).map(({ field }) => field)];
  }
}

describe('the options of a list', () => {
  test.each<[string, (number | string | undefined)[] | undefined]>([
    ['', undefined],
    ['labelSelector=a=b&fieldSelector=metadata.name=c&limit=5', undefined],
    ['labelSelector=a in', [400]],
    ['fieldSelector=a', [400]],
    ['limit=five', [400]],
    ['resourceVersion=5&resourceVersionMatch=Exact', undefined],
    ['resourceVersionMatch=Exact', [422, 'resourceVersionMatch']],
    ['resourceVersion=5&resourceVersionMatch=Near', [422, 'resourceVersionMatch']],
    ['resourceVersion=0&resourceVersionMatch=Exact', [422, 'resourceVersionMatch']],
  ])('LIST-5: %s', (query, expected) => {
    expect(problem(query)).toEqual(expected);
  });

  test('LIST-5: an unreadable selector is reported before an invalid combination', () => {
    expect(problem('labelSelector=a in&resourceVersionMatch=Exact')).toEqual([400]);
  });

  test('WATCH-5: a watch requests initial events only where they are served', () => {
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    expect(problem(query, allOn)).toBeUndefined();
    expect(problem(query, without)?.[0]).toBe(422);
    expect(problem('watch=1&sendInitialEvents=true', allOn)?.[0]).toBe(422);
  });
});
