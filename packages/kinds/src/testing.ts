/** Exports for tests, benchmarks, and the siege, in addition to the public index. Not stable. */

export { certificateSigningRequest } from './certificates/certificate-signing-request.ts';
export { exampleAuthority } from './certificates/cluster-trust-bundle.ts';
export { previewKinds } from './older/release.ts';
