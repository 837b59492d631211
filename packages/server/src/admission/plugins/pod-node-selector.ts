import {
  type ApiObject,
  internalError,
  labelValue,
  notFound,
  qualifiedName,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { clusterDefaultSelector } from '../configuration/plugins.ts';
import { nodeSelectorOf, specOf, writtenPod } from '../pods.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Restricts the pods of a namespace to the nodes that its annotation selects, or else the
 * configuration, which may also limit the selectors of its pods (ADM-1).
 */
export function podNodeSelector(tools: AdmissionTools): AdmissionPlugin {
  const annotation = tools.dialect.label('node-selector', 'scheduler.alpha');
  const selectors = tools.configurations.nodeSelectors;
  const selectorOf = async ({ target: { namespace } }: AdmissionCall): Promise<Labels> => {
    const namespaceObject = await tools.objects.get('namespaces', {
      namespace: '',
      name: namespace,
    });
    if (namespaceObject === undefined)
      throw notFound({ group: '', resource: 'namespaces' }, namespace);
    const own = namespaceObject.metadata.annotations?.[annotation];
    return parsed(own ?? selectors?.get(clusterDefaultSelector) ?? '');
  };
  const checkAllowed = (call: AdmissionCall, pod: ApiObject): void => {
    const allowed = parsed(selectors?.get(call.target.namespace) ?? '');
    if (Object.keys(allowed).length === 0) return;
    const chosen = Object.entries(nodeSelectorOf(specOf(pod)));
    if (chosen.every(([key, value]) => Object.hasOwn(allowed, key) && allowed[key] === value))
      return;
    const why = 'pod node label selector labels conflict with its namespace whitelist';
    throw refusal(call, why);
  };
  const check = async (call: AdmissionCall): Promise<Labels> => {
    const wanted = await selectorOf(call);
    const own = nodeSelectorOf(call.object === undefined ? {} : specOf(call.object));
    const isConflict = Object.entries(wanted).some(
      ([key, value]) => Object.hasOwn(own, key) && own[key] !== value,
    );
    if (!isConflict) return wanted;
    const why = 'pod node label selector conflicts with its namespace node label selector';
    throw refusal(call, why);
  };
  return {
    name: 'PodNodeSelector',
    async mutate(call) {
      const pod = writtenPod(call, ['CREATE']);
      if (pod === undefined) return;
      const wanted = await check(call);
      const spec = specOf(pod);
      const selector = { ...wanted, ...nodeSelectorOf(spec) };
      if (Object.keys(selector).length > 0) spec['nodeSelector'] = selector;
      checkAllowed(call, pod);
    },
    async validate(call) {
      const pod = writtenPod(call, ['CREATE']);
      if (pod === undefined) return;
      await check(call);
      checkAllowed(call, pod);
    },
  };
}

/** Parses `key=value,key=value`; an invalid text is an internal error, as in kube-apiserver. */
function parsed(text: string): Labels {
  const labels: Record<string, string> = Object.create(null);
  if (text === '') return labels;
  for (const pair of text.split(',')) {
    const [key = '', value, ...rest] = pair.split('=').map((part) => part.trim());
    if (value === undefined || rest.length > 0) throw internalError(`invalid selector: [${pair}]`);
    const problems = [...qualifiedName(key), ...labelValue(value)];
    if (problems.length > 0) throw internalError(`invalid selector: [${pair}]`);
    labels[key] = value;
  }
  return labels;
}
