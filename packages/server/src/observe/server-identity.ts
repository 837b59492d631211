import { createHash } from 'node:crypto';

/**
 * The name under which a server announces itself (PLANE-1). It is stable across restarts, distinct
 * for each component of a host, and equal to kube-apiserver's, so that programs find the Lease of a
 * host's server by name.
 */
export function serverIdentity(hostname: string, component: string): string {
  const hash = createHash('sha256');
  for (const part of [hostname, component]) {
    const bytes = Buffer.from(part);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return `apiserver-${base32(hash.digest().subarray(0, 16))}`;
}

/** A metric label that distinguishes servers without revealing their hosts. */
export function serverIdentityHash(hostname: string, component: string): string {
  const identity = serverIdentity(hostname, component);
  return `sha256:${createHash('sha256').update(identity).digest('hex')}`;
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

function base32(bytes: Buffer): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += alphabet[(value >> (bits - 5)) & 31];
    value &= (1 << bits) - 1;
  }
  return bits === 0 ? text : text + alphabet[(value << (5 - bits)) & 31];
}
