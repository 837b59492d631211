export { ApiError } from '@wheelhouse/client';
export { FlagError } from './flags/flags.ts';
export { FaultRuleError } from './plane/checks.ts';
export { startControlPlane } from './plane/control-plane.ts';
export { ManifestError } from './plane/sources.ts';
export type {
  CollectionReference,
  ControlPlane,
  ControlPlaneOptions,
  Fault,
  FaultMatch,
  FaultRule,
  ManifestObject,
  ManifestSource,
  ObjectReference,
  PlaneClient,
  PlaneClock,
  PlaneFaults,
  PlaneRequest,
  PlaneSnapshot,
  PlaneUser,
  RecordedFilter,
  RecordedRequest,
  RestoredPlane,
  TypedObject,
  WatchFilter,
  WebhookEndpoint,
  WebhookOptions,
} from './plane/types.ts';
