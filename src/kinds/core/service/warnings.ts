import { isIPv4 } from 'node:net';
import type { Dialect } from '../../../dialect.ts';
import { formatIpAddress, parseIpAddress } from '../../../meta/ip-address.ts';
import { isHeadless, noAddress, type Service } from './spec.ts';

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
    ...(spec.type === 'ExternalName' && external.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : []),
    ...(isHeadless(spec) ? headlessWarnings(spec) : []),
  ];
}

function headlessWarnings(spec: Service['spec']): readonly string[] {
  const ignored = (name: string) => `spec.${name} is ignored for headless services`;
  return [
    ...((spec.externalIPs ?? []).length > 0 ? [ignored('externalIPs')] : []),
    ...(spec.sessionAffinity === 'None' ? [] : [ignored('SessionAffinity')]),
  ];
}

/** Addresses that are read today, but not alike by everybody. */
export function addressWarnings(field: string, text: string): readonly string[] {
  const address = parseIpAddress(text);
  if (address === undefined) return [];
  if (!text.includes(':')) {
    if (isIPv4(text)) return [];
    const why = `ParseAddr(${JSON.stringify(text)}): IPv4 field has octet with leading zero`;
    return [`${field}: IP address was accepted, but will be invalid in a future release: ${why}`];
  }
  const canonical = formatIpAddress(address);
  if (address.family === 4 || canonical === text) return [];
  const how = `is not in RFC 5952 canonical format (${JSON.stringify(canonical)})`;
  const text6 = JSON.stringify(text);
  return [`${field}: IPv6 address ${text6} ${how}, which may cause controller apply-loops`];
}
