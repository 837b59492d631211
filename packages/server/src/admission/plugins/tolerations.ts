import { objectAt, objectsAt, qualityOfService, textAt } from '@wheelhouse/kinds';
import {
  type Dialect,
  isObject,
  type JsonObject,
  notFound,
  StatusError,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import {
  comparisonBudget,
  includes,
  mergeTolerations,
  setTolerations,
  specOf,
  writtenPod,
} from '../pods.ts';
import type { AdmissionTools } from '../tools.ts';

/**
 * Adds tolerations for unready and unreachable nodes to pods without their own (ADM-1): for five
 * minutes, or as flags say.
 */
export function defaultTolerationSeconds(tools: AdmissionTools): AdmissionPlugin {
  const { dialect, settings } = tools;
  const added = [
    [dialect.label('not-ready', 'node'), settings.notReadyTolerationSeconds],
    [dialect.label('unreachable', 'node'), settings.unreachableTolerationSeconds],
  ] as const;
  return {
    name: 'DefaultTolerationSeconds',
    mutate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return undefined;
      const spec = specOf(pod);
      const present = objectsAt(spec, 'tolerations');
      const bears = (key: string) =>
        present.some((toleration) => {
          const [own, effect] = [textAt(toleration, 'key'), textAt(toleration, 'effect')];
          return (own === key || own === '') && (effect === 'NoExecute' || effect === '');
        });
      const missing = added.filter(([key]) => !bears(key));
      if (missing.length === 0) return undefined;
      spec['tolerations'] = [
        ...present,
        ...missing.map(([key, tolerationSeconds]) => ({
          key,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds,
        })),
      ];
      return undefined;
    },
  };
}

/** Adds tolerations for nodes reserved for the extended resources that a pod requests (ADM-1). */
export function extendedResourceToleration({ dialect }: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ExtendedResourceToleration',
    mutate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return undefined;
      const spec = specOf(pod);
      const containers = [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')];
      const requestedNames = containers.flatMap((container) =>
        Object.keys(objectAt(container, 'resources', 'requests') ?? {}),
      );
      const extended = [...new Set(requestedNames)]
        .filter((name) => isExtended(name, dialect))
        .sort();
      if (extended.length === 0) return undefined;
      setTolerations(
        spec,
        extended.map((key) => ({ key, operator: 'Exists', effect: 'NoSchedule' })),
      );
      return undefined;
    },
  };
}

/** Resource names of a domain other than the project's own are extended resources. */
function isExtended(name: string, dialect: Dialect): boolean {
  const isNative = !name.includes('/') || name.includes(dialect.label(''));
  return !isNative && !name.startsWith('requests.');
}

/** Tolerations, and whether they are those of the namespace or of the whole cluster. */
interface Listed {
  readonly list: readonly JsonObject[];
  readonly scope: 'namespace' | 'cluster';
}

/**
 * Adds the tolerations of a namespace's annotation, or else of the configuration, to new pods, and
 * rejects tolerations that another annotation does not allow (ADM-1). Pods with requests also
 * tolerate memory pressure.
 */
export function podTolerationRestriction(tools: AdmissionTools): AdmissionPlugin {
  const { dialect, objects } = tools;
  const defaults = dialect.label('defaultTolerations', 'scheduler.alpha');
  const allowed = dialect.label('tolerationsWhitelist', 'scheduler.alpha');
  const memoryPressure = {
    key: dialect.label('memory-pressure', 'node'),
    operator: 'Exists',
    effect: 'NoSchedule',
  };
  const { tolerations: cluster } = tools.configurations;
  /** The tolerations of an annotation; `otherwise`, the cluster's, without the annotation. */
  const named = async (
    call: AdmissionCall,
    annotation: string,
    otherwise: readonly JsonObject[] = [],
  ): Promise<Listed> => {
    const { namespace } = call.target;
    const found = await objects.get('namespaces', { namespace: '', name: namespace });
    if (found === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
    const own = found.metadata.annotations?.[annotation];
    return own === undefined
      ? { list: otherwise, scope: 'cluster' }
      : { list: parsed(own), scope: 'namespace' };
  };
  const validate = async (call: AdmissionCall): Promise<void> => {
    const pod = writtenPod(call, ['CREATE', 'UPDATE']);
    const tolerations = pod === undefined ? [] : objectsAt(specOf(pod), 'tolerations');
    if (tolerations.length === 0) return;
    const { list, scope } = await named(call, allowed, cluster?.allowed);
    const budget = comparisonBudget();
    const isAllowed = tolerations.every((toleration) => {
      budget.spend(list.length);
      return list.some((wider) => includes(wider, toleration));
    });
    if (list.length === 0 || isAllowed) return;
    throw unexplained(
      `pod tolerations (possibly merged with namespace default tolerations) conflict with its ${scope} whitelist`,
    );
  };
  return {
    name: 'PodTolerationRestriction',
    async mutate(call) {
      const pod = writtenPod(call, ['CREATE', 'UPDATE']);
      if (pod === undefined) return;
      const spec = specOf(pod);
      const extra = [
        ...(call.operation === 'CREATE'
          ? (await named(call, defaults, cluster?.defaults)).list
          : []),
        ...(qualityOfService(spec) === 'BestEffort' ? [] : [memoryPressure]),
      ];
      if (extra.length > 0) {
        spec['tolerations'] = mergeTolerations(objectsAt(spec, 'tolerations'), extra);
      }
      await validate(call);
    },
    validate,
  };
}

/** kube-apiserver gives no reason for refusals of this plugin, so they count as failures. */
function unexplained(message: string): StatusError {
  return new StatusError({ code: 500, reason: '', message });
}

function parsed(text: string): readonly JsonObject[] {
  if (text === '') return [];
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every(isObject)) return value;
  } catch {
    // Reported below, like any other text that is not a list.
  }
  throw unexplained('the tolerations in an annotation of the namespace cannot be read');
}
