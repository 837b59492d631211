import { expect, test } from 'vitest';
import { serverIdentity, serverIdentityHash } from './server-identity.ts';

test('a server has the identity that kube-apiserver has on the same host', () => {
  const identity = serverIdentity('testAPIServerID', 'kube-apiserver');
  expect(identity).toBe('apiserver-5toptfq5wsd34qjmvecvmgbige');
  expect(serverIdentityHash('testAPIServerID', 'kube-apiserver')).toBe(
    'sha256:3c607df3b2bf22c9d9f01d5314b4bbf411c48ef43ff44ff29b1d55b41367c795',
  );
});
