import { isUtf8 } from 'node:buffer';
import { call } from '../servers.mjs';
import { compareAnswers } from './compare.mjs';

function shownBody(body) {
  if (!Buffer.isBuffer(body)) return JSON.stringify(body);
  const isText = isUtf8(body) && !body.includes(0);
  return isText ? JSON.stringify(body.toString()) : `base64 ${body.toString('base64')}`;
}

/**
 * Sends requests to both servers and collects how their answers differ.
 *
 * @param both the servers, the reference first
 */
export function createReport(both) {
  const groups = new Map();
  let comparisons = 0;

  /** Prints the first difference of each group of similar ones. */
  function note(subject, request, difference) {
    const signature = `${subject} ${request.method ?? 'GET'} ${difference.signature}`;
    const count = groups.get(signature) ?? 0;
    groups.set(signature, count + 1);
    if (count > 0 && !process.env.PEERS_ALL) return;
    const { method = 'GET', path, headers } = request;
    console.log(`\n# ${signature}\n${difference.text}`);
    console.log(`  ${method} ${path} ${JSON.stringify(headers ?? {})}`);
    console.log(`  ${shownBody(request.body)?.slice(0, 2500)}`);
  }

  return {
    /** Compares what the servers say in another way; `difference` is undefined if it is the same. */
    compared(subject, request, difference) {
      comparisons += 1;
      if (difference !== undefined) note(subject, request, difference);
    },
    /** Sends a request; `bodies` holds a body per server if they differ. */
    async send({ subject, bodies, ...request }) {
      const answers = await Promise.all(
        both.map((server, i) => {
          const sent = { ...request, body: bodies?.[i] ?? request.body };
          // The reference drops the connection of a request whose handler panics.
          return call(server, sent).catch(() => ({ status: 0, body: undefined }));
        }),
      );
      comparisons += 1;
      const difference = compareAnswers(...answers);
      const body = bodies?.[0] ?? request.body;
      if (difference !== undefined) note(subject, { ...request, body }, difference);
      return answers;
    },
    finish() {
      console.log(`\n${comparisons} comparisons, ${groups.size} groups of differences`);
      for (const [signature, count] of groups) console.log(`${count}\t${signature}`);
    },
  };
}
