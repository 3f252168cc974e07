// Bytes that stand in a script as text.

export function fromBase64(text) {
  const chars = atob(text);
  const bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes;
}

/** A strict policy refuses `fetch("data:")`, but not this. */
export function unpacking(packed) {
  return new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
}

export async function collected(stream) {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function unpack(packed) {
  return collected(unpacking(packed));
}
