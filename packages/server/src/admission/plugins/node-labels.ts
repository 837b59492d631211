import type { Dialect } from '@wheelhouse/machinery';

type Labels = Readonly<Record<string, string>>;

/**
 * Finds the labels that a node may not give itself, or take away (AUTHZ-9): those set aside for
 * keeping nodes apart, and the project's own but for the few that describe the node. Gives the
 * names that differ between two sets, sorted.
 */
export function forbiddenNodeLabels(
  dialect: Dialect,
): (labels: Labels, before: Labels) => string[] {
  const own = (domain: string) => [dialect.labelDomain, dialect.groupSuffix].some(within(domain));
  const setAside = dialect.label('', 'node-restriction').slice(0, -1);
  const described = describingLabels(dialect);
  const isForbidden = (key: string) => {
    const domain = domainOf(key);
    if (within(domain)(setAside)) return true;
    return own(domain) && !described.keys.has(key) && !described.domains.some(within(domain));
  };
  return (labels, before) => {
    const keys = new Set([...Object.keys(labels), ...Object.keys(before)]);
    const differs = (key: string) =>
      !Object.hasOwn(labels, key) || !Object.hasOwn(before, key) || labels[key] !== before[key];
    return [...keys].filter((key) => differs(key) && isForbidden(key)).sort();
  };
}

/** What a node says of itself: its name, system, place and size. */
function describingLabels({ label }: Dialect) {
  return {
    keys: new Set([
      label('hostname'),
      label('zone', 'topology'),
      label('region', 'topology'),
      label('zone', 'failure-domain.beta'),
      label('region', 'failure-domain.beta'),
      label('instance-type', 'node'),
      label('instance-type', 'beta'),
      label('os'),
      label('arch'),
      label('os', 'beta'),
      label('arch', 'beta'),
      label('windows-build', 'node'),
    ]),
    domains: [label('', 'kubelet').slice(0, -1), label('', 'node').slice(0, -1)],
  };
}

const within = (domain: string) => (parent: string) =>
  domain === parent || domain.endsWith(`.${parent}`);

function domainOf(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? '' : key.slice(0, slash);
}
