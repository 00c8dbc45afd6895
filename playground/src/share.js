// The state of the page in the fragment of its address. Browsers do not send fragments to servers.

/** Maximum size of a decompressed state, in bytes. */
const MAX_BYTES = 2_000_000;

const PREFIX = '#1.';

/** Returns the fragment for a state: compressed JSON in base64url. */
export async function encode(state) {
  const json = new Blob([JSON.stringify(state)]);
  const packed = json.stream().pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return PREFIX + btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Returns the state of a fragment, or undefined if the fragment has none. Throws an error if it is damaged. */
export async function decode(fragment) {
  if (!fragment.startsWith(PREFIX)) return undefined;
  const base64 = fragment.slice(PREFIX.length).replaceAll('-', '+').replaceAll('_', '/');
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const reader = unpacked.getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new Error('the link is too large');
    }
    chunks.push(value);
  }
  const state = JSON.parse(await new Blob(chunks).text());
  if (typeof state !== 'object' || state === null) throw new Error('the link has no content');
  return state;
}
