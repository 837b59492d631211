import {
  type Dialect,
  formatIpAddress,
  parseIpAddress,
  parseIpBlock,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { noAddress, type Service } from './spec.ts';

/** What is accepted but worth a word to the writer. */
export function serviceWarnings({ spec, metadata }: Service, dialect: Dialect): readonly string[] {
  const older = dialect.label('topology-aware-hints', 'service');
  const newer = dialect.label('topology-mode', 'service');
  const ips = (spec.clusterIPs ?? []).filter((ip) => ip !== noAddress);
  const external = spec.externalIPs ?? [];
  return [
    ...(Object.hasOwn(metadata.annotations ?? {}, older)
      ? [`annotation ${older} is deprecated, please use ${newer} instead`]
      : []),
    ...ips.flatMap((ip, index) => addressWarnings(`spec.clusterIPs[${index}]`, ip)),
    ...external.flatMap((ip, index) => addressWarnings(`spec.externalIPs[${index}]`, ip)),
    ...((spec.loadBalancerIP ?? '') === ''
      ? []
      : addressWarnings('spec.loadBalancerIP', spec.loadBalancerIP ?? '')),
    ...(spec.loadBalancerSourceRanges ?? []).flatMap((range, index) =>
      rangeWarnings(`spec.loadBalancerSourceRanges[${index}]`, range),
    ),
    ...(spec.type === 'ExternalName' && external.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : []),
    ...(spec.type !== 'ExternalName' && (spec.externalName ?? '') !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ];
}

const lasts = 'was accepted, but will be invalid in a future Kubernetes release';
const applyLoops = 'which may cause controller apply-loops';

/** Ranges of addresses that are read today, but not alike by everybody. */
function rangeWarnings(field: string, text: string): readonly string[] {
  const range = parseIpBlock(text.trim());
  if (range === undefined) return [];
  const [address = '', bits = ''] = text.split('/');
  const why = strictAddressProblem(address) ?? bitsProblem(bits);
  if (why !== undefined) {
    const parseError = `netip.ParsePrefix(${JSON.stringify(text)}): ${why}`;
    return [`${field}: IP prefix ${lasts}: ${parseError}`];
  }
  const canonical = `${formatIpAddress(parseIpAddress(address) ?? range.base)}/${bits}`;
  if (!address.includes(':') || canonical === text) return [];
  const how = `is not in RFC 5952 canonical format (${JSON.stringify(canonical)})`;
  return [`${field}: IPv6 prefix ${JSON.stringify(text)} ${how}, ${applyLoops}`];
}

const bitsProblem = (bits: string) =>
  /^0\d|\s/.test(bits) ? `bad bits after slash: ${JSON.stringify(bits)}` : undefined;

/** Addresses that are read today, but not alike by everybody. */
export function addressWarnings(field: string, text: string): readonly string[] {
  const why = strictAddressProblem(text);
  if (why !== undefined) return [`${field}: IP address ${lasts}: ${why}`];
  const address = parseIpAddress(text);
  if (address === undefined || !text.includes(':')) return [];
  const canonical = formatIpAddress(address);
  if (address.family === 4 || canonical === text) return [];
  const how = `is not in RFC 5952 canonical format (${JSON.stringify(canonical)})`;
  const text6 = JSON.stringify(text);
  return [`${field}: IPv6 address ${text6} ${how}, ${applyLoops}`];
}
