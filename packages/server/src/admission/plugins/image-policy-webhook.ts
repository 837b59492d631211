import { reviewStatusReader, structType, textType, truthType } from '@wheelhouse/codec';
import { objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  createExpiringCache,
  type JsonObject,
  objectOf,
  textOf,
  type WaitingClient,
  webhookBody,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { specOf, writtenPod } from '../pods.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

/** Maximum number of cached verdicts; kube-apiserver's figure. */
const verdictsMax = 1024;

interface Verdict {
  readonly allowed: boolean;
  readonly reason: string;
  readonly auditAnnotations: readonly (readonly [key: string, value: string])[];
}

/** Asks a service whether the images of a pod may run, and caches its verdicts (ADM-1). */
export function imagePolicyWebhook(tools: AdmissionTools): AdmissionPlugin {
  const { dialect, clock, configurations, log } = tools;
  const policy = configurations.imagePolicy;
  if (policy === undefined) throw new Error('ImagePolicyWebhook has no configuration');
  const verdicts = createExpiringCache<Verdict>({ entriesMax: verdictsMax, clock });
  const ask = async (spec: JsonObject, client: WaitingClient | undefined): Promise<Verdict> => {
    const key = JSON.stringify(spec);
    const cached = verdicts.get(key);
    if (cached !== undefined) return cached;
    const apiVersion = `${dialect.group('imagepolicy')}/v1alpha1`;
    const metadata = { creationTimestamp: null };
    const review = { kind: 'ImageReview', apiVersion, metadata, spec, status: { allowed: false } };
    const read = (answer: JsonObject) => verdictOf(answer, apiVersion);
    const verdict = await policy.webhook.call(webhookBody(review), read, client);
    verdicts.set(key, verdict, verdict.allowed ? policy.allowTtlMs : policy.denyTtlMs);
    return verdict;
  };
  const prefix = `imagepolicywebhook.${dialect.group('image-policy')}`;
  const fails = (call: AdmissionCall, pod: ApiObject, error: unknown): void => {
    log('the image policy webhook failed', error);
    if (policy.onFailure === 'deny') throw refusal(call, 'the image policy webhook is unavailable');
    call.context.request?.annotate(`${prefix}/failed-open`, 'true');
    const annotations = pod.metadata.annotations ?? {};
    const name = `alpha.${dialect.group('image-policy')}/failed-open`;
    pod.metadata.annotations = { ...annotations, [name]: 'true' };
  };
  return {
    name: 'ImagePolicyWebhook',
    async validate(call) {
      const pod = reviewedPod(call);
      if (pod === undefined) return;
      let verdict: Verdict;
      try {
        const spec = reviewSpec(pod, call.target, dialect.group('image-policy'));
        verdict = await ask(spec, call.context.request?.client);
      } catch (error) {
        fails(call, pod, error);
        return;
      }
      for (const [key, value] of verdict.auditAnnotations) {
        call.context.request?.annotate(`${prefix}/${key}`, value);
      }
      if (verdict.allowed) return;
      throw refusal(
        call,
        verdict.reason === ''
          ? 'one or more images rejected by webhook backend'
          : `image policy webhook backend denied one or more images: ${verdict.reason}`,
      );
    },
  };
}

/** A new pod, or one that ephemeral containers are added to. */
function reviewedPod(call: AdmissionCall): ApiObject | undefined {
  const isEphemeral = call.target.subresource === 'ephemeralcontainers';
  return isEphemeral ? call.object : writtenPod(call, ['CREATE', 'UPDATE']);
}

function reviewSpec(
  pod: ApiObject,
  { namespace, subresource }: AdmissionCall['target'],
  domain: string,
): JsonObject {
  const spec = specOf(pod);
  const members = subresource === '' ? ['containers', 'initContainers'] : ['ephemeralContainers'];
  const containers = members.flatMap((member) => objectsAt(spec, member));
  const annotationEntries = Object.entries(pod.metadata.annotations ?? {}).filter(([key]) =>
    key.includes(`.${domain}/`),
  );
  return {
    containers: containers.map((container) => ({ image: textAt(container, 'image') })),
    ...(annotationEntries.length === 0
      ? {}
      : { annotations: Object.fromEntries(annotationEntries.sort()) }),
    namespace,
  };
}

const readStatus = reviewStatusReader(
  'ImageReview',
  structType('ImageReviewStatus', {
    allowed: truthType,
    reason: textType,
    auditAnnotations: { type: 'object', additionalProperties: textType },
  }),
);

/** The verdict of an answer; without a status, the images may not run, as in kube-apiserver. */
function verdictOf(answer: JsonObject, apiVersion: string): Verdict {
  const { allowed, reason, auditAnnotations } = readStatus(answer, apiVersion);
  const annotations = objectOf(auditAnnotations);
  return {
    allowed: allowed === true,
    reason: textOf(reason),
    auditAnnotations: Object.entries(annotations).map(([key, text]) => [key, textOf(text)]),
  };
}
