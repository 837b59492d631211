import { admissionFacts } from './admission.ts';
import { admissionregistrationFacts } from './admissionregistration.ts';
import { apidiscoveryFacts } from './apidiscovery.ts';
import { apiserverinternalFacts } from './apiserverinternal.ts';
import { appsFacts } from './apps.ts';
import { authenticationFacts } from './authentication.ts';
import { authorizationFacts } from './authorization.ts';
import { autoscalingFacts } from './autoscaling.ts';
import { batchFacts } from './batch.ts';
import { certificatesFacts } from './certificates.ts';
import { coordinationFacts } from './coordination.ts';
import { coreFacts } from './core.ts';
import { discoveryFacts } from './discovery.ts';
import { eventsFacts } from './events.ts';
import { extensionsFacts } from './extensions.ts';
import { flowcontrolFacts } from './flowcontrol.ts';
import { imagepolicyFacts } from './imagepolicy.ts';
import { metaFacts } from './meta.ts';
import { networkingFacts } from './networking.ts';
import { nodeFacts } from './node.ts';
import { policyFacts } from './policy.ts';
import { rbacFacts } from './rbac.ts';
import { resourceFacts } from './resource.ts';
import { schedulingFacts } from './scheduling.ts';
import { storageFacts } from './storage.ts';
import { storagemigrationFacts } from './storagemigration.ts';

/** The table of each group, by the directory upstream keeps it in. Made by scripts/facts/generate.mjs. */
export const factsByGroup: Readonly<Record<string, string>> = {
  admission: admissionFacts,
  admissionregistration: admissionregistrationFacts,
  apidiscovery: apidiscoveryFacts,
  apiserverinternal: apiserverinternalFacts,
  apps: appsFacts,
  authentication: authenticationFacts,
  authorization: authorizationFacts,
  autoscaling: autoscalingFacts,
  batch: batchFacts,
  certificates: certificatesFacts,
  coordination: coordinationFacts,
  core: coreFacts,
  discovery: discoveryFacts,
  events: eventsFacts,
  extensions: extensionsFacts,
  flowcontrol: flowcontrolFacts,
  imagepolicy: imagepolicyFacts,
  meta: metaFacts,
  networking: networkingFacts,
  node: nodeFacts,
  policy: policyFacts,
  rbac: rbacFacts,
  resource: resourceFacts,
  scheduling: schedulingFacts,
  storage: storageFacts,
  storagemigration: storagemigrationFacts,
};

/** Group name without the vendor suffix, by directory. */
export const groupStems: Readonly<Record<string, string>> = {
  admission: 'admission',
  admissionregistration: 'admissionregistration',
  apidiscovery: 'apidiscovery',
  apiserverinternal: 'internal.apiserver',
  apps: 'apps',
  authentication: 'authentication',
  authorization: 'authorization',
  autoscaling: 'autoscaling',
  batch: 'batch',
  certificates: 'certificates',
  coordination: 'coordination',
  core: '',
  discovery: 'discovery',
  events: 'events',
  extensions: 'extensions',
  flowcontrol: 'flowcontrol.apiserver',
  imagepolicy: 'imagepolicy',
  meta: 'meta',
  networking: 'networking',
  node: 'node',
  policy: 'policy',
  rbac: 'rbac.authorization',
  resource: 'resource',
  scheduling: 'scheduling',
  storage: 'storage',
  storagemigration: 'storagemigration',
};
