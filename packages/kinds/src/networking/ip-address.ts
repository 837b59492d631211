import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  formatStrictly,
  goQuoted,
  invalid,
  invalidGo,
  type NameRule,
  parseIpAddress,
  pathSegment,
  required,
  ruleErrors,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { IPAddress } from '../gen/types/networking/v1beta1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { sameOrEmpty } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** IPAddress: records the object that uses an address. */
export function ipAddress(dialect: Dialect): ResourceDef {
  const columns = [
    nameColumn,
    column('ParentRef', parentOf, { description: 'Object that the address belongs to.' }),
  ];
  return defineKind<IPAddress>({
    dialect,
    facts: 'networking',
    kind: 'IPAddress',
    resource: 'ipaddresses',
    scope: 'Cluster',
    shortNames: ['ip'],
    versions: [
      { version: 'v1beta1', columns },
      { version: 'v1alpha1', columns },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName,
      // A suffix would not make another address.
      generateName: (address) => address,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [...validate(object), ...validateUnchanged(object, old)],
    },
    example: () => ({
      apiVersion: `${dialect.group('networking')}/v1beta1`,
      kind: 'IPAddress',
      metadata: { name: '10.0.0.7' },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'example' } },
    }),
  });
}

/** The cell with the object that uses the address: `services/default/example`. */
function parentOf(object: Stored<IPAddress>): string {
  const parent = object.spec?.parentRef;
  if (parent === undefined) return '<none>';
  const [group, namespace] = [parent?.group ?? '', parent?.namespace ?? ''];
  const resource = `${parent?.resource ?? ''}${group === '' ? '' : `.${group}`}`.toLowerCase();
  return [resource, ...(namespace === '' ? [] : [namespace]), parent?.name ?? ''].join('/');
}

const validateName: NameRule = (name) => {
  const problem = strictAddressProblem(name);
  if (problem !== undefined) return [problem];
  const address = parseIpAddress(name);
  const isCanonical = address !== undefined && formatStrictly(name, address) === name;
  return isCanonical ? pathSegment(name) : ['must be a canonical format IP address'];
};

function validate(object: Stored<IPAddress>): FieldError[] {
  const parent = object.spec?.parentRef ?? undefined;
  const path = 'spec.parentRef';
  if (parent === undefined) return [required(path)];
  const member = (name: string) => textAt(parent, name);
  const segment = (name: string) => ruleErrors(`${path}.${name}`, member(name), pathSegment);
  const needed = (name: string) =>
    member(name) === '' ? [required(`${path}.${name}`)] : segment(name);
  const group = member('group');
  return [
    ...(group === '' ? [] : ruleErrors(`${path}.group`, group, dnsSubdomain)),
    ...needed('resource'),
    ...needed('name'),
    ...(member('namespace') === '' ? [] : segment('namespace')),
  ];
}

function validateUnchanged(object: Stored<IPAddress>, old: Stored<IPAddress>): FieldError[] {
  const parent = object.spec?.parentRef ?? undefined;
  if (sameOrEmpty(parent, old.spec?.parentRef ?? undefined)) return [];
  if (parent === undefined) return [invalid('spec.parentRef', 'null', 'field is immutable')];
  const shown = () => {
    const members = (['group', 'resource', 'namespace', 'name'] as const).map(
      (name) => `${name[0]?.toUpperCase()}${name.slice(1)}:${goQuoted(parent[name] ?? '')}`,
    );
    return `networking.ParentReference{${members.join(', ')}}`;
  };
  return [invalidGo('spec.parentRef', shown, 'field is immutable')];
}

/** The labels of the IPAddresses that the allocator of Services creates. */
export function addressLabels(dialect: Dialect): {
  readonly family: string;
  readonly managedBy: string;
  /** The value of `managedBy` for the allocator. */
  readonly allocator: string;
} {
  return {
    family: dialect.label('ip-family', 'ipaddress'),
    managedBy: dialect.label('managed-by', 'ipaddress'),
    allocator: `ipallocator.${dialect.groupSuffix}`,
  };
}
