import { defaultFlowObjects, type ResourceDef } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import type { FlowDefs } from '../../controllers/flow-control.ts';
import { type ControllerTools, controllerTools } from '../../controllers/tools.ts';
import { type FlowControl, limitInFlight } from '../../gates/flowcontrol/contract.ts';
import { dumpLevels } from '../../gates/flowcontrol/dump.ts';
import {
  FairFlowControl,
  type FlowSettings,
  type WatchCounts,
} from '../../gates/flowcontrol/fair-flow-control.ts';
import { createFlowMetrics, KindUsage } from '../../gates/flowcontrol/flow-metrics.ts';
import { readLevel, readSchema } from '../../gates/flowcontrol/settings.ts';
import type { RequestMetrics } from '../../observe/request-metrics.ts';
import { serverContext } from '../../registry/registry.ts';
import type { Around, ReadingBase } from '../context.ts';
import type { DebugPage } from '../observability/pages.ts';
import { beginAfter, type LateBackground } from '../parts.ts';

/** The flow control gate and its debug page. */
export interface FlowGate {
  readonly gate: FlowControl | FairFlowControl;
  readonly debugPage: DebugPage | undefined;
  close(): void;
}

/**
 * Creates the gate that shares the server's concurrency (OPS-3), with its metrics and debug pages.
 * Limits of zero or infinity contribute no seats; without any seats nothing is limited.
 */
export function createFlowControl(
  options: ReadingBase & { readonly watches: WatchCounts },
): FlowGate {
  const { config, dialect, metrics } = options;
  const { limits, clock, flowControl } = config;
  const { readsInFlightMax: readOnlyMax, writesInFlightMax: mutatingMax } = limits;
  const seatsTotal = [readOnlyMax, mutatingMax]
    .filter(Number.isFinite)
    .reduce((sum, limit) => sum + limit, 0);
  if (flowControl?.type === 'max-in-flight' || seatsTotal <= 0) {
    const gate = limitInFlight({ readOnlyMax, mutatingMax });
    return { gate, debugPage: undefined, close() {} };
  }
  const flowMetrics = createFlowMetrics(metrics.registry);
  const kinds = new KindUsage(clock.monotonic());
  const updateKinds = kinds.measureIn(metrics.registry);
  const fair = new FairFlowControl({
    clock,
    seatsTotal,
    requestTimeoutMs: limits.requestTimeoutMs,
    defaults: defaultSettings(dialect),
    countObjects: objectCounter(options),
    watches: options.watches,
    seriesOf: flowMetrics.seriesOf,
    levelSeriesOf: flowMetrics.levelSeriesOf,
    kinds,
  });
  metrics.beforeRender(() => {
    flowMetrics.refresh(fair.levels);
    const waiting = [...fair.levels.all()].reduce((sum, { set }) => sum + set.room, 0);
    updateKinds(clock.monotonic(), { readOnly: readOnlyMax, mutating: mutatingMax, waiting });
  });
  const wallMs = (monotonicMs: number) => clock.now() - clock.monotonic() + monotonicMs;
  return {
    gate: fair,
    debugPage: (request) => dumpLevels(fair.levels, request, wallMs),
    close: () => fair.close(),
  };
}

function defaultSettings(dialect: Dialect): FlowSettings {
  const { levels, schemas } = defaultFlowObjects(dialect);
  return {
    levels: levels.flatMap((object) => readLevel(object) ?? []),
    schemas: schemas.map(readSchema),
  };
}

interface CountedKind {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** Returns the number of objects that a list reads, if the cache already counts them. */
function objectCounter({
  catalogue,
  caches,
}: Pick<ReadingBase, 'catalogue' | 'caches'>): (kind: CountedKind) => number | undefined {
  return ({ group, version, resource }) => {
    const def = catalogue.snapshot().find(group, version, resource)?.def;
    if (def === undefined || def.isComputed === true || def.isVirtual === true) return undefined;
    try {
      return caches.of(def).count();
    } catch {
      // The kind or the server is closing.
      return undefined;
    }
  };
}

/** kube-apiserver's names of the controllers that read and maintain the objects. */
const consumer = 'api-priority-and-fairness-config-consumer-v1';
const producer = 'api-priority-and-fairness-config-producer-v1';

interface FlowObjectOptions extends Around {
  readonly flowControl: FlowControl | FairFlowControl;
}

/** Creates the missing default objects if objects configure flow control. */
export async function createFlowObjects(options: FlowObjectOptions): Promise<void> {
  const defs = followedDefs(options);
  if (defs === undefined) return;
  const { createFlowDefaults } = await import('../../controllers/flow-control.ts');
  await createFlowDefaults({ ...flowTools(options, producer), defs, dialect: options.dialect });
}

const flowTools = (around: Around, controller: string): ControllerTools =>
  controllerTools(around, { controller, user: serverContext.user });

/** Start hooks of flow control, with the names of kube-apiserver's checks (HEALTH-2). */
export function flowHooks(
  options: FlowObjectOptions & { readonly informersReady: () => Promise<void> },
): readonly (readonly [name: string, run: () => Promise<void>])[] {
  const { api, flowControl } = options;
  const countsObjects = async () => {
    await options.informersReady();
    const { catalogue, registry } = api;
    const namespaces = { group: '', version: 'v1', resource: 'namespaces' };
    if (catalogue.snapshot().find('', 'v1', 'namespaces') === undefined) return;
    if (objectCounter({ catalogue, caches: registry.caches })(namespaces) === undefined)
      throw new Error('objects are not counted');
  };
  const counts = ['storage-object-count-tracker-hook', countsObjects] as const;
  if (!(flowControl instanceof FairFlowControl)) return [counts];
  const { caches } = api.registry;
  const followsObjects = async () => {
    const defs: readonly ResourceDef[] = Object.values(followedDefs(options) ?? {});
    await Promise.all(defs.map((def) => caches.of(def).ready()));
  };
  const hasSeats = async () => {
    const seats = [...flowControl.levels.all()].reduce((sum, { current }) => sum + current, 0);
    if (seats <= 0) throw new Error('no priority level has seats');
  };
  return [
    ['priority-and-fairness-config-consumer', followsObjects],
    ['priority-and-fairness-filter', hasSeats],
    counts,
  ];
}

/** Once the server is ready, maintains the objects and follows them, in every server of a store. */
export function followFlowObjects(
  ready: Promise<void>,
  options: FlowObjectOptions,
): LateBackground {
  const { config, dialect, flowControl: fair } = options;
  const { clock, logger, controllersPauseMs } = config;
  // Controllers go first: until objects are stored, the defaults apply unchanged.
  const pauseMs = controllersPauseMs === undefined ? undefined : controllersPauseMs * 4;
  const defs = followedDefs(options);
  if (!(fair instanceof FairFlowControl) || defs === undefined) {
    return { begun: Promise.resolve(), close: async () => {} };
  }
  return beginAfter(ready, { clock, logger, pauseMs }, async () => {
    const { startFlowConfiguration, startFlowDefaults } = await import(
      '../../controllers/flow-control.ts'
    );
    const started = await Promise.all([
      startFlowDefaults({ ...flowTools(options, producer), defs, dialect }),
      startFlowConfiguration({
        ...flowTools(options, consumer),
        defs,
        configure: (settings) => fair.configure(settings),
        defaultLevels: new Set(defaultSettings(dialect).levels.map(({ name }) => name)),
      }),
    ]);
    return {
      async close() {
        await Promise.all(started.map((controller) => controller.close()));
      },
    };
  });
}

/**
 * The kinds of the objects that configure flow control; undefined if none do or the kinds are not
 * served.
 */
function followedDefs({
  config,
  dialect,
  api,
  flowControl,
}: FlowObjectOptions): FlowDefs | undefined {
  const { flowControl: settings } = config;
  const isIgnored = settings?.type === 'priority-and-fairness' && settings.objects === 'ignored';
  if (!(flowControl instanceof FairFlowControl) || isIgnored) return undefined;
  const snapshot = api.catalogue.snapshot();
  const group = dialect.group('flowcontrol.apiserver');
  const levels = snapshot.builtin(group, 'prioritylevelconfigurations');
  const schemas = snapshot.builtin(group, 'flowschemas');
  return levels === undefined || schemas === undefined ? undefined : { levels, schemas };
}

/** Counts open watches in addition to measuring them. */
export function countingWatches(requests: RequestMetrics, watches: WatchCounts): RequestMetrics {
  return {
    ...requests,
    beginStream(exchange, info, time) {
      const end = requests.beginStream(exchange, info, time);
      if (info.verb !== 'watch') return end;
      const forget = watches.add(info);
      return () => {
        end();
        forget();
      };
    },
  };
}
