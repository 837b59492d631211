import { objectsAt, qualityOfService } from '@wheelhouse/kinds';
import { isObject, type JsonObject, notFound, StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { comparisonBudget, includes, mergeTolerations, specOf, writtenPod } from '../pods.ts';
import type { AdmissionTools } from '../tools.ts';

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
