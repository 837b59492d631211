// Alternately reads and replaces an object over one HTTP/1.1 connection, and prints the number of
// answers per status. A separate program, because it would be too slow in the server's process.
// Arguments: URL of the object, token, number of turns.
import { Agent, request } from 'node:https';

const [url, token, turns] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
const sockets = new Set();

function ask(method, body) {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const headers = { authorization: `Bearer ${token}`, ...length };
    const sent = request(url, { method, agent, headers });
    sent.on('socket', (socket) => sockets.add(socket));
    sent.on('response', (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve({ status: answer.statusCode, text: parts.join('') }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const counts = {};
for (let turn = 0; turn < Number(turns); turn += 1) {
  const { text } = await ask('GET');
  const object = JSON.parse(text);
  object.data.turn = String(turn);
  const { status } = await ask('PUT', JSON.stringify(object));
  counts[status] = (counts[status] ?? 0) + 1;
}
agent.destroy();
process.stdout.write(JSON.stringify({ counts, sockets: sockets.size }));
