import type { JsonObject } from '../../base/json.ts';
import type { Dialect } from '../../dialect.ts';
import { textAt } from '../cells.ts';
import { objectAt, objectsAt } from '../fill.ts';
import { validateAffinity } from './affinity.ts';
import { isDeletionCost } from './annotations.ts';
import { annotationsOf, plainPath } from './fields.ts';
import { validateSpreadSelector } from './placement.ts';
import { validateResources } from './resources.ts';
import { type Allowances, nothingAllowed } from './rules.ts';
import { validateSysctls } from './security.ts';
import { eachContainer } from './visit.ts';

/** What a holder of a pod's metadata and spec already breaks, and an update of it may go on to. */
export function allowancesOf(old: JsonObject | undefined, dialect: Dialect): Allowances {
  const spec = objectAt(old, 'spec') ?? {};
  const rules = { dialect, allow: nothingAllowed };
  const has = (errors: readonly { message: string }[], words: string) =>
    errors.some(({ message }) => message.includes(words));
  const resources = () =>
    eachContainer(spec, '').flatMap(({ container, path }) =>
      validateResources(objectAt(container, 'resources'), path, rules),
    );
  const isPlain = (source: JsonObject) => {
    const token = objectAt(source, 'serviceAccountToken');
    return token === undefined || plainPath('', textAt(token, 'path')).length === 0;
  };
  return {
    indivisibleHugePages:
      usesHugePages(spec) && has(resources(), 'is not positive integer multiple'),
    affinityLabelValues: validateAffinity(spec, '', rules).some(({ field }) =>
      /\.matchExpressions\[\d+\]\.values\[/.test(field),
    ),
    spreadSelectors: objectsAt(spec, 'topologySpreadConstraints').some(
      (constraint) => validateSpreadSelector(constraint, '').length > 0,
    ),
    tokenPaths: objectsAt(spec, 'volumes').some(
      (volume) => !objectsAt(volume, 'projected', 'sources').every(isPlain),
    ),
    hostSysctls: has(validateSysctls(spec, '', rules), "may not be specified when 'host"),
    deletionCost: !isDeletionCost(annotationsOf(old), dialect),
  };
}

const usesHugePages = (spec: JsonObject): boolean =>
  eachContainer(spec, '').some(({ container }) =>
    ['limits', 'requests'].some((kind) =>
      Object.keys(objectAt(container, 'resources', kind) ?? {}).some((name) =>
        name.startsWith('hugepages-'),
      ),
    ),
  );
