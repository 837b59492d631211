import { requestedNames, type Stored, textAt } from '@wheelhouse/kinds';
import type { CertificateSigningRequest } from '@wheelhouse/kinds/types/certificates/v1';
import { jsonEqual } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { onlyCollectorsFieldsDiffer } from '../objects.ts';
import { type AdmissionTools, checkAccess, refusal } from '../tools.ts';

/** Requires permission to `approve` for a signer to approve or deny its requests (ADM-1). */
export function certificateApproval(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'CertificateApproval',
    async validate(call) {
      if (call.operation !== 'UPDATE' || call.target.subresource !== 'approval') return;
      const signer = textAt(call.old, 'spec', 'signerName');
      if (await mayActFor(tools, { call, verb: 'approve', signer })) return;
      const name = JSON.stringify(signer);
      throw refusal(call, `user not permitted to approve requests with signerName ${name}`);
    },
  };
}

/**
 * Requires permission to `sign` for a signer to issue its certificates or fail its requests
 * (ADM-1).
 */
export function certificateSigning(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'CertificateSigning',
    async validate(call) {
      if (call.operation !== 'UPDATE' || call.target.subresource !== 'status') return;
      const issued = (request: Stored<CertificateSigningRequest> | undefined) => ({
        certificate: request?.status?.certificate ?? null,
        conditions: [...(request?.status?.conditions ?? [])],
      });
      if (jsonEqual(issued(call.object), issued(call.old))) return;
      const signer = textAt(call.old, 'spec', 'signerName');
      if (await mayActFor(tools, { call, verb: 'sign', signer })) return;
      const name = JSON.stringify(signer);
      throw refusal(call, `user not permitted to sign requests with signerName ${name}`);
    },
  };
}

/** Checks the signer's name and then its whole domain: `example.com/x`, then `example.com/*`. */
async function mayActFor(
  tools: AdmissionTools,
  { call, verb, signer }: { call: AdmissionCall; verb: string; signer: string },
): Promise<boolean> {
  const { user } = call.context;
  const group = tools.dialect.group('certificates');
  const ask = (name: string) =>
    checkAccess(tools, { user, verb, group, resource: 'signers', name });
  if ((await ask(signer)).allowed) return true;
  return (await ask(`${signer.split('/', 1)[0]}/*`)).allowed;
}

/** Requires permission to `attest` for a signer to publish trust in its name (ADM-1). */
export function clusterTrustBundleAttest(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ClusterTrustBundleAttest',
    async validate(call) {
      const { operation, object, old } = call;
      if (operation === 'DELETE') return;
      const signer = textAt(object, 'spec', 'signerName');
      if (signer === '') return;
      // An unchanged signer, as when the garbage collector updates the object, needs no permission.
      const isKept = object !== undefined && old !== undefined;
      if (isKept && onlyCollectorsFieldsDiffer(object, old)) return;
      if (await mayActFor(tools, { call, verb: 'attest', signer })) return;
      const name = JSON.stringify(signer);
      throw refusal(call, `user not permitted to attest for signerName ${name}`);
    },
  };
}

/** Rejects requests for client certificates of group `system:masters` (ADM-1). */
export function certificateSubjectRestriction(tools: AdmissionTools): AdmissionPlugin {
  const signer = tools.dialect.label('kube-apiserver-client');
  return {
    name: 'CertificateSubjectRestriction',
    validate(call) {
      const { operation, target, object } = call;
      if (operation !== 'CREATE' || target.subresource !== '') return undefined;
      if (textAt(object, 'spec', 'signerName') !== signer) return undefined;
      const pem = Buffer.from(textAt(object, 'spec', 'request'), 'base64');
      const names = requestedNames(pem);
      if (names?.organizations.includes('system:masters') === false) return undefined;
      throw refusal(call, `use of ${signer} signer with system:masters group is not allowed`);
    },
  };
}
