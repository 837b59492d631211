import type { JsonObject } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { metadataLines } from './metadata.ts';
import type { RelatedDescriber } from './related.ts';

/** Number of addresses that are shown for a port. */
const endpointsMax = 3;

const wordsAt = (object: JsonObject, name: string): string =>
  [valueAt(object, name) ?? []].flat().map(String).join(',');

const optional = (title: string, text: string): string[] =>
  text === '' ? [] : [`${title}:\t${text}`];

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
    ...listAt(spec, 'ports').flatMap((port) => portLines(port, slices)),
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

function portLines(port: JsonObject, slices: readonly JsonObject[]): string[] {
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
export function endpointsText(slices: readonly JsonObject[], name: string): string {
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
      .flatMap((port) =>
        ready.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${String(port['port'])}`),
      );
  });
  const shown = addresses.slice(0, endpointsMax).join(',');
  const hidden = addresses.length - endpointsMax;
  return hidden > 0 ? `${shown} + ${hidden} more...` : shown;
}

/** The describer of services. */
export const serviceDescribers: Readonly<Record<string, RelatedDescriber>> = {
  Service: describeService,
};
