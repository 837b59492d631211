import { builtinGroupOrder, builtinKinds, describedIn } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { createCatalogue } from '../catalogue/catalogue.ts';
import { openApiV2 } from './openapi-v2.ts';

test('TRUST-2: the OpenAPI 2 document is created in one step per path and definition', () => {
  const dialect = dialectOf('svc');
  const groupOrder = builtinGroupOrder(dialect);
  const { snapshot } = createCatalogue(builtinKinds(dialect), { groupOrder });
  const work = openApiV2({
    dialect,
    release: 'v1.0.0',
    snapshot: snapshot(),
    plainPaths: [],
    descriptions: describedIn(dialect),
  });
  let steps = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  const pieces = step.value;
  const text = pieces.join('');
  const { paths, definitions } = JSON.parse(text) as Record<'paths' | 'definitions', object>;
  const parts = Object.keys(paths).length + Object.keys(definitions).length;
  expect(parts).toBeGreaterThan(500);
  expect(steps).toBeGreaterThan(parts / 2);
  expect(pieces.length).toBeGreaterThan(parts);
});
