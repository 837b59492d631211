export { ApiError } from '@wheelhouse/client';
export { FlagError } from './compose/flags/flags.ts';
export { startControlPlane } from './plane/control-plane.ts';
export { ManifestError } from './plane/sources.ts';
export type {
  CollectionReference,
  ControlPlane,
  ControlPlaneOptions,
  ManifestObject,
  ManifestSource,
  ObjectReference,
  PlaneClient,
  PlaneRequest,
  PlaneSnapshot,
  PlaneUser,
  RestoredPlane,
  WebhookEndpoint,
  WebhookOptions,
} from './plane/types.ts';
