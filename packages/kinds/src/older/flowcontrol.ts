import type { ApiObject, Dialect, JsonObject } from '@wheelhouse/machinery';
import { at } from '../cells.ts';
import {
  defaultShares,
  fillLevel,
  zeroSharesAnnotation,
} from '../flowcontrol/priority-level-configuration.ts';
import { fill, objectAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

const assured = 'assuredConcurrencyShares';
const nominal = 'nominalConcurrencyShares';

/** The versions with `assuredConcurrencyShares`. */
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

/**
 * PriorityLevelConfiguration `v1beta3`, which defaults only absent shares. As in kube-apiserver, an
 * annotation tells older clients that zero shares are intended.
 */
function nominalLevel(dialect: Dialect): OlderVersion {
  const key = zeroSharesAnnotation(dialect);
  return {
    facts: 'flowcontrol',
    version: 'v1beta3',
    isOnByDefault: true,
    defaulting: 'alone',
    defaults(object) {
      fill(objectAt(object, 'spec', 'limited'), { [nominal]: defaultShares });
      fillLevel(object);
    },
    toStorage(object) {
      const { [key]: _, ...others } = object.metadata.annotations ?? {};
      if (object.metadata.annotations !== undefined) object.metadata.annotations = others;
      if (Object.keys(others).length === 0) delete object.metadata.annotations;
      return object;
    },
    fromStorage(object) {
      if (at(object, 'spec', 'limited', nominal) !== 0) return object;
      object.metadata.annotations = { ...object.metadata.annotations, [key]: '' };
      return object;
    },
  };
}

/** Defaults the shares of versions in which zero equals absent. */
function fillShares(object: JsonObject, member: string): void {
  const limited = objectAt(object, 'spec', 'limited');
  if (limited === undefined) return;
  if ((limited[member] ?? 0) === 0) limited[member] = defaultShares;
}

function rename(object: ApiObject, { from, to }: { from: string; to: string }): ApiObject {
  const limited = objectAt(object, 'spec', 'limited');
  if (limited === undefined || limited[from] === undefined) return object;
  limited[to] = limited[from];
  delete limited[from];
  return object;
}
