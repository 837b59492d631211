import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  formatStrictly,
  type IpBlock,
  invalid,
  invalidGo,
  parseIpAddress,
  parseIpBlock,
  required,
  showValue,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind, keepMetadata, statusSubresource } from '../define.ts';
import type { ServiceCIDR } from '../gen/types/networking/v1beta1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { goStrings, same } from '../rules/checks.ts';
import { keepMembers } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

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
    resource: 'servicecidrs',
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
    example: () => ({
      apiVersion: `${dialect.group('networking')}/v1beta1`,
      kind: 'ServiceCIDR',
      metadata: { name: 'example' },
      spec: { cidrs: ['10.9.0.0/24'] },
    }),
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
  if (cidrs.length > cidrsMax) {
    return [invalidGo(field, shown, 'may only hold up to 2 values')];
  }
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
