import { labelValue, qualifiedName } from '../meta/names.ts';
import { internalError, notFound } from '../meta/status.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import type { AdmissionPlugin } from './chain.ts';
import { labelsAt, specOf, writtenPod } from './pods.ts';
import { type AdmissionTools, refusal } from './tools.ts';

type Labels = Readonly<Record<string, string>>;

/** Keeps the pods of a namespace on the nodes that its annotation selects (ADM-1). */
export function podNodeSelector(tools: AdmissionTools): AdmissionPlugin {
  const annotation = tools.dialect.label('node-selector', 'scheduler.alpha');
  const selectorOf = async ({ target: { namespace } }: AdmissionCall): Promise<Labels> => {
    const found = await tools.objects.get('namespaces', { namespace: '', name: namespace });
    if (found === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
    return parsed(found.metadata.annotations?.[annotation] ?? '');
  };
  const check = async (call: AdmissionCall): Promise<Labels> => {
    const wanted = await selectorOf(call);
    const own = labelsAt(call.object === undefined ? {} : specOf(call.object), 'nodeSelector');
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
      const selector = { ...wanted, ...labelsAt(spec, 'nodeSelector') };
      if (Object.keys(selector).length > 0) spec['nodeSelector'] = selector;
    },
    async validate(call) {
      if (writtenPod(call, ['CREATE']) !== undefined) await check(call);
    },
  };
}

/** Reads `key=value,key=value`; upstream answers what it cannot read with an internal error. */
function parsed(text: string): Labels {
  const labels: Record<string, string> = Object.create(null) as Record<string, string>;
  if (text === '') return labels;
  for (const pair of text.split(',')) {
    const [key = '', value, ...rest] = pair.split('=').map((part) => part.trim());
    if (value === undefined || rest.length > 0) {
      throw internalError(`invalid selector: [${pair}]`);
    }
    const problems = [...qualifiedName(key), ...labelValue(value)];
    if (problems.length > 0) throw internalError(`invalid selector: [${pair}]`);
    labels[key] = value;
  }
  return labels;
}
