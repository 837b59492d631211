import { ApiError } from '@wheelhouse/client';
import { hostInUrl, isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt, textsAt, valueAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { annotationLines, labelLines, metadataLines } from './metadata.ts';
import { conditionTable, zonedTime } from './pod-template.ts';
import type { RelatedDescriber, RelatedObjects } from './related.ts';
import { headLines, optional } from './tabs.ts';

const describeIngress: RelatedDescriber = async (ingress, related) => {
  const spec = objectAt(ingress, 'spec');
  const addresses = listAt(ingress, 'status', 'loadBalancer', 'ingress')
    .map((point) => textAt(point, 'ip') || textAt(point, 'hostname'))
    .filter((address) => address !== '');
  const { defaultBackend } = spec;
  const fallback = isObject(defaultBackend)
    ? await backendText(defaultBackend, related)
    : '<default>';
  const tls = listAt(spec, 'tls').map((entry) => {
    const [secret, hosts] = [textAt(entry, 'secretName'), textsAt(entry, 'hosts').join(',')];
    return secret === '' ? `  SNI routes ${hosts}` : `  ${secret} terminates ${hosts}`;
  });
  const rules: string[] = [];
  for (const rule of listAt(spec, 'rules').filter(({ http }) => isObject(http))) {
    rules.push(`  ${textAt(rule, 'host') || '*'}\t`);
    for (const path of listAt(rule, 'http', 'paths')) {
      const backend = await backendText(objectAt(path, 'backend'), related);
      rules.push(`    \t${textAt(path, 'path')} \t${backend}`);
    }
  }
  return [
    `Name:\t${nameOf(ingress)}`,
    ...labelLines(ingress),
    `Namespace:\t${namespaceOf(ingress)}`,
    `Address:\t${[...new Set(addresses)].sort().join(',')}`,
    `Ingress Class:\t${textAt(spec, 'ingressClassName') || '<none>'}`,
    `Default backend:\t${fallback}`,
    ...(tls.length === 0 ? [] : ['TLS:', ...tls]),
    'Rules:',
    ...headLines(['Host', 'Path', 'Backends'], '  '),
    ...(rules.length === 0 ? [`  *\t*\t${fallback}`] : rules),
    ...annotationLines(ingress),
  ];
};

/** `web:80 (10.0.0.1:8080)`: a service with the addresses behind its port, or another object. */
async function backendText(backend: JsonObject, related: RelatedObjects): Promise<string> {
  const { service, resource } = backend;
  if (isObject(service)) {
    const name = textAt(service, 'name');
    const port = objectAt(service, 'port');
    const shown = `${name}:${String(port['number'] ?? port['name'] ?? '')}`;
    try {
      const slices = await related.list('EndpointSlice', {
        labelSelector: `${related.dialect.label('service-name')}=${name}`,
      });
      const found = await related.get('Service', name);
      const target = listAt(found, 'spec', 'ports').findLast((candidate) =>
        port['number'] === undefined
          ? candidate['name'] === port['name']
          : candidate['port'] === port['number'],
      );
      return `${shown} (${endpointsText(slices, textAt(target, 'name'))})`;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return `${shown} (<error: ${error.message}>)`;
    }
  }
  if (!isObject(resource)) return '';
  const group = textAt(resource, 'apiGroup') || '<none>';
  return `APIGroup: ${group}, Kind: ${textAt(resource, 'kind')}, Name: ${textAt(resource, 'name')}`;
}

const describeIngressClass: RelatedDescriber = (object) => {
  const parameters = member(objectAt(object, 'spec'), 'parameters');
  const group = textAt(object, 'spec', 'parameters', 'apiGroup');
  return [
    `Name:\t${nameOf(object)}`,
    ...metadataLines(object),
    `Controller:\t${textAt(object, 'spec', 'controller')}`,
    ...(isObject(parameters)
      ? [
          'Parameters:',
          ...(group === '' ? [] : [`  APIGroup:\t${group}`]),
          `  Kind:\t${textAt(parameters, 'kind')}`,
          `  Name:\t${textAt(parameters, 'name')}`,
        ]
      : []),
  ];
};

const describeServiceRange: RelatedDescriber = (range) => {
  const conditions = conditionTable(listAt(range, 'status', 'conditions'));
  return [
    `Name:\t${nameOf(range)}`,
    ...metadataLines(range),
    `CIDRs:\t${textsAt(range, 'spec', 'cidrs').join(', ')}`,
    ...(conditions.length === 0 ? [] : ['Status:', ...conditions]),
  ];
};

const describeAddress: RelatedDescriber = (address) => {
  const parent = objectAt(address, 'spec', 'parentRef');
  const titles = ['Group', 'Resource', 'Namespace', 'Name'];
  return [
    `Name:\t${nameOf(address)}`,
    ...metadataLines(address),
    'Parent Reference:',
    ...titles.map((title) => `  ${title}:\t${textAt(parent, title.toLowerCase())}`),
  ];
};

const describeEndpoints: RelatedDescriber = (endpoints) => {
  const addresses = (subset: JsonObject, name: string) =>
    listAt(subset, name)
      .map((address) => textAt(address, 'ip'))
      .join(',') || '<none>';
  return [
    `Name:\t${nameOf(endpoints)}`,
    `Namespace:\t${namespaceOf(endpoints)}`,
    ...metadataLines(endpoints),
    'Subsets:',
    ...listAt(endpoints, 'subsets').flatMap((subset) => [
      `  Addresses:\t${addresses(subset, 'addresses')}`,
      `  NotReadyAddresses:\t${addresses(subset, 'notReadyAddresses')}`,
      ...portLines(listAt(subset, 'ports'), '    ').map((line, at) =>
        at === 0 ? `  ${line}` : line,
      ),
      '',
    ]),
  ];
};

/** A table of named ports; empty if there are none. */
function portLines(ports: readonly JsonObject[], indent: string): string[] {
  if (ports.length === 0) return [];
  const rows = ports.map((port) => {
    const name = textAt(port, 'name') || '<unset>';
    return `${indent}${name}\t${String(port['port'] ?? '<unset>')}\t${textAt(port, 'protocol')}`;
  });
  return ['Ports:', ...headLines(['Name', 'Port', 'Protocol'], indent), ...rows];
}

const describeSlice: RelatedDescriber = (slice) => {
  const ports = portLines(listAt(slice, 'ports'), '  ');
  const endpoints = listAt(slice, 'endpoints');
  return [
    `Name:\t${nameOf(slice)}`,
    `Namespace:\t${namespaceOf(slice)}`,
    ...metadataLines(slice),
    `AddressType:\t${textAt(slice, 'addressType')}`,
    ...(ports.length === 0 ? ['Ports: <unset>'] : ports),
    ...(endpoints.length === 0 ? ['Endpoints: <none>'] : ['Endpoints:']),
    ...endpoints.flatMap(endpointLines),
  ];
};

function endpointLines(endpoint: JsonObject): string[] {
  const { targetRef } = endpoint;
  const text = (name: string) => textAt(endpoint, name) || '<unset>';
  return [
    `  - Addresses:\t${textsAt(endpoint, 'addresses').join(', ') || '<none>'}`,
    '    Conditions:',
    `      Ready:\t${String(objectAt(endpoint, 'conditions')['ready'] ?? '<unset>')}`,
    `    Hostname:\t${text('hostname')}`,
    ...(isObject(targetRef)
      ? [`    TargetRef:\t${textAt(targetRef, 'kind')}/${textAt(targetRef, 'name')}`]
      : []),
    `    NodeName:\t${text('nodeName')}`,
    `    Zone:\t${text('zone')}`,
  ];
}

const describeNetworkPolicy: RelatedDescriber = (policy) => {
  const spec = objectAt(policy, 'spec');
  const created = textAt(policy, 'metadata', 'creationTimestamp');
  const types = textsAt(spec, 'policyTypes');
  const traffic = (type: 'Ingress' | 'Egress') => {
    const word = type.toLowerCase();
    if (!types.includes(type)) return [`  Not affecting ${word} traffic`];
    return [`  Allowing ${word} traffic:`, ...ruleLines(listAt(spec, word), type)];
  };
  const everyPod = '<none> (Allowing the specific traffic to all pods in this namespace)';
  const pods = selectorText(objectAt(spec, 'podSelector'));
  return [
    `Name:\t${nameOf(policy)}`,
    `Namespace:\t${namespaceOf(policy)}`,
    `Created on:\t${zonedTime(created)}`,
    ...metadataLines(policy),
    'Spec:',
    `  PodSelector:     ${pods || everyPod}`,
    ...traffic('Ingress'),
    ...traffic('Egress'),
    `  Policy Types: ${types.join(', ') || '<none>'}`,
  ];
};

/** Describes the rules of one direction, separated by lines. */
function ruleLines(rules: readonly JsonObject[], type: 'Ingress' | 'Egress'): string[] {
  const [peers, title, end] =
    type === 'Ingress' ? ['from', 'From', 'source'] : ['to', 'To', 'destination'];
  const isolated = `    <none> (Selected pods are isolated for ${type.toLowerCase()} connectivity)`;
  if (rules.length === 0) return [isolated];
  return rules.flatMap((rule, at) => {
    const ports = listAt(rule, 'ports').map(portText);
    const list = listAt(rule, peers!);
    return [
      ...(ports.length === 0 ? ['    To Port: <any> (traffic allowed to all ports)'] : ports),
      ...(list.length === 0 ? [`    ${title}: <any> (traffic not restricted by ${end})`] : []),
      ...list.flatMap((peer) => [`    ${title}:`, ...peerLines(peer)]),
      ...(at === rules.length - 1 ? [] : ['    ----------']),
    ];
  });
}

function portText(port: JsonObject): string {
  const [first, { endPort: last }] = [String(port['port'] ?? '<nil>'), port];
  const protocol = textAt(port, 'protocol') || 'TCP';
  return last === undefined
    ? `    To Port: ${first}/${protocol}`
    : `    To Port Range: ${first}-${String(last)}/${protocol}`;
}

function peerLines(peer: JsonObject): string[] {
  const { ipBlock } = peer;
  const selectors = ['namespaceSelector', 'podSelector'].flatMap((name) => {
    const selector = peer[name];
    const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    return isObject(selector) ? [`      ${title}: ${selectorText(selector) || '<none>'}`] : [];
  });
  if (selectors.length > 0 || !isObject(ipBlock)) return selectors;
  return [
    '      IPBlock:',
    `        CIDR: ${textAt(ipBlock, 'cidr')}`,
    `        Except: ${textsAt(ipBlock, 'except').join(', ')}`,
  ];
}

/** Describers of what leads traffic to Pods, by kind, with the stem of the group. */
export const networkDescribers: Readonly<Record<string, RelatedDescriber>> = {
  Endpoints: describeEndpoints,
  'discovery/EndpointSlice': describeSlice,
  'networking/IPAddress': describeAddress,
  'networking/Ingress': describeIngress,
  'networking/IngressClass': describeIngressClass,
  'networking/NetworkPolicy': describeNetworkPolicy,
  'networking/ServiceCIDR': describeServiceRange,
};

/** Number of addresses that are shown for a port. */
const endpointsMax = 3;

const wordsAt = (object: JsonObject, name: string): string =>
  [valueAt(object, name) ?? []].flat().map(String).join(',');

const describeService: RelatedDescriber = async (service, related) => {
  const spec = objectAt(service, 'spec');
  const slices = await related.listOrNone('EndpointSlice', {
    labelSelector: `${related.dialect.label('service-name')}=${nameOf(service)}`,
  });
  const health = spec['healthCheckNodePort'];
  return [
    `Name:\t${nameOf(service)}`,
    `Namespace:\t${namespaceOf(service)}`,
    ...metadataLines(service),
    `Selector:\t${selectorText({ matchLabels: objectAt(spec, 'selector') }) || '<none>'}`,
    `Type:\t${textAt(spec, 'type')}`,
    ...optional('IP Family Policy', textAt(spec, 'ipFamilyPolicy')),
    `IP Families:\t${wordsAt(spec, 'ipFamilies') || '<none>'}`,
    `IP:\t${textAt(spec, 'clusterIP')}`,
    `IPs:\t${wordsAt(spec, 'clusterIPs') || '<none>'}`,
    ...optional('External IPs', wordsAt(spec, 'externalIPs')),
    ...optional('Desired LoadBalancer IP', textAt(spec, 'loadBalancerIP')),
    ...optional('External Name', textAt(spec, 'externalName')),
    ...optional('LoadBalancer Ingress', ingressText(service)),
    ...listAt(spec, 'ports').flatMap((port) => servicePortLines(port, slices)),
    `Session Affinity:\t${textAt(spec, 'sessionAffinity')}`,
    ...optional('External Traffic Policy', textAt(spec, 'externalTrafficPolicy')),
    ...optional('Internal Traffic Policy', textAt(spec, 'internalTrafficPolicy')),
    ...(health === undefined ? [] : [`HealthCheck NodePort:\t${String(health)}`]),
    ...optional('LoadBalancer Source Ranges', wordsAt(spec, 'loadBalancerSourceRanges')),
  ];
};

function ingressText(service: JsonObject): string {
  return listAt(service, 'status', 'loadBalancer', 'ingress')
    .map((point) => {
      const [ip, mode] = [textAt(point, 'ip'), textAt(point, 'ipMode')];
      if (ip === '') return textAt(point, 'hostname');
      return mode === '' ? ip : `${ip} (${mode})`;
    })
    .join(', ');
}

function servicePortLines(port: JsonObject, slices: readonly JsonObject[]): string[] {
  const name = textAt(port, 'name');
  const shown = name || '<unset>';
  const protocol = textAt(port, 'protocol');
  const { nodePort } = port;
  return [
    `Port:\t${shown}\t${String(port['port'])}/${protocol}`,
    `TargetPort:\t${String(port['targetPort'])}/${protocol}`,
    ...(nodePort === undefined ? [] : [`NodePort:\t${shown}\t${String(nodePort)}/${protocol}`]),
    `Endpoints:\t${endpointsText(slices, name)}`,
  ];
}

/** The ready addresses behind a port of a service; the first few, and the number of others. */
function endpointsText(slices: readonly JsonObject[], name: string): string {
  if (slices.length === 0) return '<none>';
  const addresses = slices.flatMap((slice) => {
    const ready = listAt(slice, 'endpoints')
      .filter((endpoint) => objectAt(endpoint, 'conditions')['ready'] !== false)
      .map((endpoint) => String([valueAt(endpoint, 'addresses') ?? []].flat()[0] ?? ''));
    const ports = listAt(slice, 'ports');
    // A headless service may have no ports.
    if (ports.length === 0) return ready;
    return ports
      .filter((port) => textAt(port, 'name') === name)
      .flatMap((port) => ready.map((ip) => `${hostInUrl(ip)}:${String(port['port'])}`));
  });
  const shown = addresses.slice(0, endpointsMax).join(',');
  const hidden = addresses.length - endpointsMax;
  return hidden > 0 ? `${shown} + ${hidden} more...` : shown;
}

/** The describer of services. */
export const serviceDescribers: Readonly<Record<string, RelatedDescriber>> = {
  Service: describeService,
};
