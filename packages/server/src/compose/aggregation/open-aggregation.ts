import type { ResourceDef } from '@wheelhouse/kinds';
import { type Counter, type Dialect, type Family, randomUuid } from '@wheelhouse/machinery';
import { createObjectReader } from '../../admission/objects.ts';
import { Aggregation } from '../../aggregation/aggregation.ts';
import type { ServiceFacts } from '../../aggregation/availability.ts';
import { identityTest } from '../../aggregation/proxy-headers.ts';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { createObjectWriter } from '../../controllers/tools.ts';
import type { QueueMeters } from '../../controllers/work-queue.ts';
import { hostRoots, type ProxyCertificate } from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { Registry } from '../../registry/registry.ts';
import type { EntryIndex } from '../../watchcache/entry.ts';
import { createServiceResolver } from '../../webhooks/service-address.ts';
import type { ServerConfig } from '../config.ts';

/** The dependencies of the proxying part of the server. */
export interface AggregationSources {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  readonly apiServices: ResourceDef;
  readonly certificate: ProxyCertificate | undefined;
  readonly queues: QueueMeters;
  /** Counts APIServices that became unavailable, by name and reason. */
  readonly lost: Family<Counter>;
}

/** Builds the proxying part; `closers` end its subscriptions. */
export function openAggregation(sources: AggregationSources): {
  readonly aggregation: Aggregation;
  readonly closers: readonly { close(): void }[];
} {
  const { config, dialect, catalogue, registry, apiServices } = sources;
  const { caches } = registry;
  const { snapshot } = catalogue;
  const { clock } = config;
  const objects = createObjectReader({ dialect, caches, clock, snapshot, freshness: 'any' });
  const label = dialect.label('service-name');
  const routing = config.aggregation?.routing ?? 'any';
  const writer = createObjectWriter({
    registry,
    controller: 'apiservice-availability',
    groups: ['system:masters'],
  });
  const aggregation = new Aggregation({
    dialect,
    clock,
    logger: config.logger,
    queues: sources.queues,
    snapshot,
    settings: {
      forwardsUid: (config.featureGates ?? defaultGates).enabled('RemoteRequestHeaderUID'),
      via: `wheelhouse-${randomUuid()}`,
      redirects: config.aggregation?.redirects ?? 'rejected',
      isIdentity: identityTest(config.authentication.requestHeader),
    },
    resolve: createServiceResolver({ dialect, objects, routing }),
    facts: factsOf(objects, label),
    certificate: () => sources.certificate?.current(),
    hostRoots,
    writeStatus: (name, edit) =>
      writer.change({ def: apiServices, namespace: '', name, subresource: 'status' }, edit),
    onUnavailable: (name, reason) => sources.lost.of(name, reason).add(1),
  });
  return { aggregation, closers: followServices(sources, { aggregation, label }) };
}

function factsOf(objects: ReturnType<typeof createObjectReader>, label: string): ServiceFacts {
  return {
    service: ({ namespace, name }) => objects.get('services', { namespace, name }),
    async endpoints({ namespace, name }) {
      const slices = await objects.list('endpointslices.discovery', namespace);
      const endpoints = await objects.get('endpoints', { namespace, name });
      return [
        ...(endpoints === undefined ? [] : [endpoints]),
        ...slices.filter(({ metadata }) => metadata.labels?.[label] === name),
      ];
    },
  };
}

/** Reports changes of Services and of their endpoints. */
function followServices(
  { dialect, catalogue, registry }: AggregationSources,
  { aggregation, label }: { readonly aggregation: Aggregation; readonly label: string },
): readonly { close(): void }[] {
  const snapshot = catalogue.snapshot();
  const follow = (def: ResourceDef | undefined, serviceOf: (index: EntryIndex) => string) => {
    if (def === undefined) return [];
    const subscription = registry.caches.of(def).subscribe(({ previous, current }) => {
      const index = (current ?? previous)?.index;
      if (index === undefined) return;
      aggregation.serviceChanged({ namespace: index.namespace, name: serviceOf(index) });
    });
    return [subscription];
  };
  const ownName = ({ name }: EntryIndex) => name;
  return [
    ...follow(snapshot.builtin('', 'services'), ownName),
    ...follow(snapshot.builtin('', 'endpoints'), ownName),
    ...follow(
      snapshot.builtin(dialect.group('discovery'), 'endpointslices'),
      ({ labels }) => labels[label] ?? '',
    ),
  ];
}
