import {
  appendAll,
  type Dialect,
  duplicate,
  type FieldError,
  invalid,
  invalidGo,
  notSupported,
  pathSegment,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { CSIDriver, TokenRequest } from '../gen/types/storage/v1.ts';
import { validateDriverName } from '../pod/fields.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';
import { goList, immutable, sameOrEmptySteps } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

const flagColumn = (name: string, member: string, description: string): ColumnDef =>
  column(name, (object) => at(object, 'spec', member) === true, { type: 'boolean', description });

const columns: readonly ColumnDef[] = [
  nameColumn,
  flagColumn('AttachRequired', 'attachRequired', 'Volumes are attached before they are mounted.'),
  flagColumn('PodInfoOnMount', 'podInfoOnMount', 'The driver gets to know the pod on mount.'),
  flagColumn('StorageCapacity', 'storageCapacity', 'The driver publishes its capacity.'),
  column(
    'TokenRequests',
    (object) => {
      const audiences = listAt(object, 'spec', 'tokenRequests').map((request) =>
        textAt(request, 'audience'),
      );
      return audiences.length === 0 ? '<unset>' : audiences.join(',');
    },
    { description: 'Audiences of the tokens that the driver receives.' },
  ),
  flagColumn('RequiresRepublish', 'requiresRepublish', 'Publish calls are repeated.'),
  column(
    'Modes',
    (object) => {
      const modes = listAt(object, 'spec', 'volumeLifecycleModes');
      return modes.length === 0 ? '<none>' : modes.join(',');
    },
    { description: 'Volume lifecycles the driver supports.' },
  ),
  ageColumn,
];

/** CSIDriver: requirements and abilities of a storage driver (CSI-1, CSI-2). */
export function csiDriver(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<CSIDriver>({
    dialect,
    features,
    facts: 'storage',
    kind: 'CSIDriver',
    resource: 'csidrivers',
    scope: 'Cluster',
    versions: [{ version: 'v1', defaults: (object) => fillDefaults(object, features), columns }],
    strategy: {
      validateName: pathSegment,
      validateCreate: (_, object) => [
        ...((object.metadata.name ?? '') === ''
          ? []
          : validateDriverName(object.metadata.name ?? '', 'metadata.name')),
        ...validateSpec(object),
      ],
      prepareForUpdate: (_, object, old) => countGeneration(object, old),
      validateUpdate: (_, object, old) => validateUpdate(object, old),
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'CSIDriver',
      metadata: { name: 'driver.example.com' },
      spec: { attachRequired: true, tokenRequests: [{ audience: 'vault' }] },
    }),
  });
}

type CsiDriver = Stored<CSIDriver>;

function fillDefaults(object: CsiDriver, features: Features): void {
  const { spec } = object;
  if (spec === undefined || spec === null) return;
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
  spec.requiresRepublish ??= false;
  if (features.enabled('SELinuxMountReadWriteOncePod')) spec.seLinuxMount ??= false;
  if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent'];
}

const groupPolicies = ['File', 'None', 'ReadWriteOnceWithFSType'];
const lifecycleModes = ['Persistent', 'Ephemeral'];

function validateSpec({ spec }: CsiDriver): FieldError[] {
  if (spec === undefined || spec === null) return [required('spec')];
  const errors: FieldError[] = [];
  const { fsGroupPolicy = '', volumeLifecycleModes = [], tokenRequests = [] } = spec;
  if (!groupPolicies.includes(fsGroupPolicy)) {
    errors.push(notSupported('spec.fsGroupPolicy', fsGroupPolicy, groupPolicies));
  }
  appendAll(errors, validateTokenRequests(tokenRequests));
  for (const mode of volumeLifecycleModes) {
    if (!lifecycleModes.includes(mode)) {
      errors.push(notSupported('spec.volumeLifecycleModes', mode, lifecycleModes));
    }
  }
  return errors;
}

const expirationMinSeconds = 600;
const expirationMaxSeconds = 2 ** 32;

function validateTokenRequests(requests: readonly Stored<TokenRequest>[]): FieldError[] {
  const seen = new Set<string>();
  return requests.flatMap(({ audience, expirationSeconds }, index) => {
    const path = `spec.tokenRequests[${index}]`;
    if (audience === undefined) return [required(`${path}.audience`)];
    if (seen.has(audience)) return [duplicate(`${path}.audience`, audience)];
    seen.add(audience);
    if (expirationSeconds === undefined || expirationSeconds === null) return [];
    const refuse = (detail: string) => [
      invalid(`${path}.expirationSeconds`, expirationSeconds, detail),
    ];
    if (expirationSeconds < expirationMinSeconds) {
      return refuse('may not specify a duration less than 10 minutes');
    }
    return expirationSeconds > expirationMaxSeconds
      ? refuse('may not specify a duration larger than 2^32 seconds')
      : [];
  });
}

/** Increases the generation if the spec changes; it starts at 0 (absent). */
function* countGeneration(object: CsiDriver, old: CsiDriver): Generator<void, void> {
  if (yield* sameOrEmptySteps(object.spec, old.spec)) return;
  object.metadata.generation = (old.metadata.generation ?? 0) + 1;
}

function validateUpdate(object: CsiDriver, old: CsiDriver): FieldError[] {
  const [spec, before] = [object.spec, old.spec];
  if (!spec || !before) return validateSpec(object);
  return [
    ...validateSpec(object),
    // kube-apiserver misspells the name in this message.
    ...immutable('spec.attachedRequired', spec.attachRequired, before.attachRequired),
    ...validateModesUnchanged(spec.volumeLifecycleModes ?? [], before.volumeLifecycleModes ?? []),
  ];
}

function validateModesUnchanged(modes: readonly string[], old: readonly string[]): FieldError[] {
  if (modes.length === old.length && modes.every((mode, index) => mode === old[index])) return [];
  const shown = goList('storage.VolumeLifecycleMode', modes);
  return [invalidGo('spec.volumeLifecycleModes', () => shown, 'field is immutable')];
}
