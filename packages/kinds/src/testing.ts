/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { certificateSigningRequest } from './certificates/certificate-signing-request.ts';
export { exampleAuthority } from './certificates/cluster-trust-bundle.ts';
export { previewKinds } from './older/release.ts';
