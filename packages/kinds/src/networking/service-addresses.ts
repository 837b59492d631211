import {
  capitalize,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  formatStrictly,
  goQuoted,
  type IpBlock,
  invalid,
  invalidGo,
  type NameRule,
  parseIpAddress,
  parseIpBlock,
  pathSegment,
  required,
  ruleErrors,
  showValue,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, keepMetadata, statusSubresource } from '../define.ts';
import type { IPAddress, ServiceCIDR } from '../gen/types/networking/v1beta1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { goStrings, same, sameOrEmpty } from '../rules/checks.ts';
import { keepMembers } from '../rules/fill.ts';

const field = 'spec.cidrs';

/** ServiceCIDR: a range of addresses for Services. */
export function serviceCidr(dialect: Dialect): ResourceDef {
  const columns = [
    nameColumn,
    column<Stored<ServiceCIDR>>('CIDRs', (object) => cidrsOf(object).join(','), {
      description: 'Address ranges.',
    }),
    ageColumn,
  ];
  return defineKind<ServiceCIDR>({
    dialect,
    facts: 'networking',
    kind: 'ServiceCIDR',
    scope: 'Cluster',
    versions: [
      { version: 'v1beta1', columns },
      { version: 'v1alpha1', columns },
    ],
    // Every endpoint writes the status, as in kube-apiserver.
    subresources: [statusSubresource],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      *prepareForUpdate({ subresource }, object, old) {
        if (subresource !== 'status') return;
        yield* keepMembers(object, old, ['spec']);
        yield* keepMetadata(object, old);
      },
      validateCreate: (_, object) => validate(object),
      validateUpdate: ({ subresource }, object, old) =>
        subresource === 'status'
          ? []
          : [
              ...validate(object),
              ...(same([...cidrsOf(object)], [...cidrsOf(old)])
                ? []
                : [invalidGo(field, () => goStrings(cidrsOf(object)), 'field is immutable')]),
            ],
    },
    example: () => ({ spec: { cidrs: ['10.9.0.0/24'] } }),
  });
}

/** The CIDR blocks of a ServiceCIDR. */
export const cidrsOf = (object: Stored<ServiceCIDR>): readonly string[] =>
  (object.spec?.cidrs ?? []).map(String);

const cidrsMax = 2;

function validate(object: Stored<ServiceCIDR>): FieldError[] {
  const cidrs = cidrsOf(object);
  const shown = () => `networking.ServiceCIDRSpec{CIDRs:${goStrings(cidrs)}}`;
  if (cidrs.length === 0) return [required(field, 'at least one CIDR required')];
  if (cidrs.length > cidrsMax) return [invalidGo(field, shown, 'may only hold up to 2 values')];
  if (cidrs.length === cidrsMax && !isDual(cidrs.map(parseIpBlock))) {
    const example = 'i.e 192.168.0.0/24 and 2001:db8::/64';
    const detail = `may specify no more than one IP for each IP family, ${example}`;
    return [invalidGo(field, shown, detail)];
  }
  return cidrs.flatMap((cidr, index) => validateCidr(cidr, `${field}[${index}]`));
}

function isDual([left, right]: readonly (IpBlock | undefined)[]): boolean {
  return left !== undefined && right !== undefined && left.base.family !== right.base.family;
}

function validateCidr(cidr: string, path: string): FieldError[] {
  const problem = prefixProblem(cidr);
  const block = parseIpBlock(cidr);
  if (problem !== undefined || block === undefined) {
    return [invalid(path, cidr, `netip.ParsePrefix(${showValue(cidr)}): ${problem}`)];
  }
  const { address, base } = block;
  const isBase = address.family === base.family && address.bits === base.bits;
  const bits = cidr.slice(cidr.indexOf('/') + 1);
  const isCanonical = `${formatStrictly(cidr, address)}/${bits}` === cidr;
  return [
    ...(isBase
      ? []
      : [invalid(path, cidr, "wrong CIDR format, IP doesn't match network IP address")]),
    ...(isCanonical ? [] : [invalid(path, cidr, 'CIDR not in RFC 5952 canonical format')]),
  ];
}

/** Returns the error of Go's strict parser for a prefix; undefined if it is valid. */
function prefixProblem(text: string): string | undefined {
  const slash = text.lastIndexOf('/');
  if (slash < 0) return "no '/'";
  const [address, bits] = [text.slice(0, slash), text.slice(slash + 1)];
  const problem = strictAddressProblem(address);
  if (problem !== undefined) return problem;
  if (address.includes('%')) return 'IPv6 zones cannot be present in a prefix';
  if (!/^(0|[1-9]\d*)$/.test(bits)) return `bad bits after slash: ${showValue(bits)}`;
  const width = parseIpAddress(address)?.family === 4 && !address.includes(':') ? 32 : 128;
  return Number(bits) > width ? 'prefix length out of range' : undefined;
}

/**
 * Whether addresses of a ServiceCIDR may be allocated: it is unless deleted or marked not ready.
 */
export function isReady(object: Stored<ServiceCIDR>): boolean {
  if (object.metadata.deletionTimestamp !== undefined) return false;
  const ready = (object.status?.conditions ?? []).find(({ type }) => type === 'Ready');
  return ready === undefined || (ready.status ?? '') === 'True';
}

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
      validateCreate: (_, object) => validateIpAddress(object),
      validateUpdate: (_, object, old) => [
        ...validateIpAddress(object),
        ...validateUnchanged(object, old),
      ],
    },
    example: () => ({
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

function validateIpAddress(object: Stored<IPAddress>): FieldError[] {
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
      (name) => `${capitalize(name)}:${goQuoted(parent[name] ?? '')}`,
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
