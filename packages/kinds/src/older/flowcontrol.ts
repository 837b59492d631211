import type { ApiObject, Dialect, JsonObject } from '@wheelhouse/machinery';
import { at } from '../cells.ts';
import { fill, objectAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

const assured = 'assuredConcurrencyShares';
const nominal = 'nominalConcurrencyShares';

/** Versions in which shares are called assured. */
const assuredLevel: Omit<OlderVersion, 'facts' | 'version'> = {
  isOnByDefault: true,
  defaulting: 'alone',
  defaults(object) {
    fillShares(object, assured);
    fillLevel(object);
  },
  toStorage: (object) => rename(object, { from: assured, to: nominal }),
  fromStorage: (object) => rename(object, { from: nominal, to: assured }),
};

/** Older versions of FlowSchema and PriorityLevelConfiguration. */
export function olderFlowControl(dialect: Dialect): readonly OlderKind[] {
  const facts = 'flowcontrol';
  const schema = (version: string): OlderVersion => ({ facts, version, isOnByDefault: true });
  return [
    {
      facts,
      kind: 'FlowSchema',
      older: ['v1beta3', 'v1beta2', 'v1beta1'].map(schema),
    },
    {
      facts,
      kind: 'PriorityLevelConfiguration',
      older: [
        nominalLevel(dialect),
        { facts, version: 'v1beta2', ...assuredLevel },
        { facts, version: 'v1beta1', ...assuredLevel },
      ],
    },
  ];
}

/** Concurrency shares of a level that states none. */
const standardShares = 30;

/**
 * PriorityLevelConfiguration `v1beta3`: only absent shares are defaulted. As in kube-apiserver, an
 * annotation marks zero shares as intended for older clients.
 */
function nominalLevel(dialect: Dialect): OlderVersion {
  const keepsZero = `flowcontrol.${dialect.groupLabel('v1beta3-preserve-zero-concurrency-shares')}`;
  return {
    facts: 'flowcontrol',
    version: 'v1beta3',
    isOnByDefault: true,
    defaulting: 'alone',
    defaults(object) {
      fill(objectAt(object, 'spec', 'limited'), { [nominal]: standardShares });
      fillLevel(object);
    },
    toStorage(object) {
      const { [keepsZero]: _, ...others } = object.metadata.annotations ?? {};
      if (object.metadata.annotations !== undefined) object.metadata.annotations = others;
      if (Object.keys(others).length === 0) delete object.metadata.annotations;
      return object;
    },
    fromStorage(object) {
      if (at(object, 'spec', 'limited', nominal) !== 0) return object;
      object.metadata.annotations = { ...object.metadata.annotations, [keepsZero]: '' };
      return object;
    },
  };
}

/** Defaults of a limited level except its shares, which differ between versions. */
function fillLevel(object: JsonObject): void {
  fill(objectAt(object, 'spec', 'exempt'), { nominalConcurrencyShares: 0, lendablePercent: 0 });
  fill(objectAt(object, 'spec', 'limited'), { lendablePercent: 0 });
  const queuing = objectAt(object, 'spec', 'limited', 'limitResponse', 'queuing');
  if (queuing === undefined) return;
  const standard = { queues: 64, handSize: 8, queueLengthLimit: 50 };
  for (const [name, value] of Object.entries(standard)) {
    if (queuing[name] === undefined || queuing[name] === 0) queuing[name] = value;
  }
}

/** In versions with assured shares, zero is the same as absent. */
function fillShares(object: JsonObject, member: string): void {
  const limited = objectAt(object, 'spec', 'limited');
  if (limited === undefined) return;
  if ((limited[member] ?? 0) === 0) limited[member] = standardShares;
}

function rename(object: ApiObject, { from, to }: { from: string; to: string }): ApiObject {
  const limited = objectAt(object, 'spec', 'limited');
  if (limited === undefined || limited[from] === undefined) return object;
  limited[to] = limited[from];
  delete limited[from];
  return object;
}
