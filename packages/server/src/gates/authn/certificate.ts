import { X509Certificate } from 'node:crypto';
import { pemBlocks } from '@wheelhouse/codec';

/**
 * Errors in the CA bundle of a webhook (PEM in base64); none if it is empty, or if at least one of
 * its certificates is valid.
 */
export function bundleProblems(bundle: string): readonly string[] {
  const pem = Buffer.from(bundle, 'base64').toString('latin1');
  const problem = pem === '' ? undefined : bundleProblem(pem);
  return problem === undefined ? [] : [`unable to load root certificates: ${problem}`];
}

function bundleProblem(pem: string): string | undefined {
  const blocks = pemBlocks(pem)
    .map((block) => ({ ...block, body: bodyOf(block.text) }))
    .filter(({ body }) => blockBody.test(body));
  let problem: string | undefined;
  for (const { body } of blocks.filter(({ type }) => type === 'CERTIFICATE')) {
    // A block with headers is encrypted.
    if (body.includes(':')) continue;
    try {
      new X509Certificate(Buffer.from(body, 'base64'));
      return undefined;
    } catch {
      problem ??= 'failed to parse certificate: x509: malformed certificate';
    }
  }
  if (problem !== undefined) return problem;
  const last = blocks.at(-1)?.text;
  const endsWhole = last !== undefined && (pem.endsWith(last) || pem.endsWith(`${last}\n`));
  return endsWhole
    ? 'no valid certificate authority data seen'
    : 'unable to parse bytes as PEM block';
}

/**
 * Headers, if any, and base64. Each line matches in only one way, so untrusted text cannot cause
 * backtracking.
 */
const blockBody = /^(?:[^\n:]*:[^\n]*\n)*[A-Za-z0-9+/=\s]*$/;

function bodyOf(block: string): string {
  return block.slice(block.indexOf('\n') + 1, block.lastIndexOf('-----END '));
}
