import {
  appendAll,
  breaks,
  dnsSubdomain,
  type FieldError,
  invalidGo,
  required,
  underscoreSubdomain,
} from '@wheelhouse/machinery';
import type { PodSpec } from '../../gen/types/core/v1.ts';
import { goStrings } from '../../rules/checks.ts';
import type { Stored } from '../../stored.ts';
import { validateIp } from '../fields.ts';
import type { Allowances, PodRules } from '../rules.ts';

/** How a pod's containers find names. */

/** What Linux's resolver takes. */
const nameserversMax = 3;
const searchPathsMax = 32;
const searchCharactersMax = 2048;

/** `dnsConfig`, of which `dnsPolicy: None` needs at least a nameserver. */
export function validateDnsConfig(
  spec: Stored<PodSpec>,
  path: string,
  { allow }: PodRules,
): FieldError[] {
  const config = spec.dnsConfig;
  const servers = config?.nameservers ?? [];
  if ((spec.dnsPolicy ?? '') === 'None') {
    if (config === undefined) {
      return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    }
    if (servers.length === 0) {
      const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      return [required(`${path}.nameservers`, detail)];
    }
  }
  if (config === undefined) return [];
  const errors: FieldError[] = [];
  if (servers.length > nameserversMax) {
    const detail = `must not have more than ${nameserversMax} nameservers`;
    errors.push(invalidGo(`${path}.nameservers`, () => goStrings(servers), detail));
  }
  servers.forEach((server, index) => {
    appendAll(errors, validateIp(`${path}.nameservers[${index}]`, server));
  });
  return [
    ...errors,
    ...validateSearches(config.searches ?? [], `${path}.searches`, allow),
    ...(config.options ?? []).flatMap((option, index) =>
      (option.name ?? '') === ''
        ? [required(`${path}.options[${index}]`, 'must not be empty')]
        : [],
    ),
  ];
}

function validateSearches(
  searches: readonly string[],
  path: string,
  { relaxedSearches }: Allowances,
): FieldError[] {
  const errors: FieldError[] = [];
  const refuse = (detail: string) =>
    errors.push(invalidGo(path, () => goStrings(searches), detail));
  if (searches.length > searchPathsMax) {
    refuse(`must not have more than ${searchPathsMax} search paths`);
  }
  if (searches.join(' ').length > searchCharactersMax) {
    refuse(
      `must not have more than ${searchCharactersMax} characters (including spaces) in the search list`,
    );
  }
  searches.forEach((search, index) => {
    if (relaxedSearches && search === '.') return;
    const name = search.endsWith('.') ? search.slice(0, -1) : search;
    const rule = relaxedSearches ? underscoreSubdomain : dnsSubdomain;
    appendAll(errors, breaks(`${path}[${index}]`, name, rule));
  });
  return errors;
}

/** Lines that are added to the file of hosts. */
export function validateHostAliases(spec: Stored<PodSpec>, path: string): FieldError[] {
  return (spec.hostAliases ?? []).flatMap((alias, index) => [
    ...validateIp(`${path}[${index}].ip`, alias.ip ?? ''),
    ...(alias.hostnames ?? []).flatMap((name, at) =>
      breaks(`${path}[${index}].hostnames[${at}]`, name, dnsSubdomain),
    ),
  ]);
}
