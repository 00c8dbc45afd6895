// Calls the engine in a worker. A call that exceeds its deadline or traps ends the worker, and a new one takes its place.

/** Time limit of a call, in milliseconds. */
export const DEADLINE = 10_000;

/** Time after which a newer call ends a running one, in milliseconds. */
const SUPERSEDE = 1_000;

/** A call that has no result: `reason` is `deadline`, `trap` or `superseded`. */
export class EngineError extends Error {
  constructor(reason, message) {
    super(message);
    this.reason = reason;
  }
}

export class Engine {
  #module;
  #worker;
  #running;
  #pending = [];
  #next = 1;

  constructor(module, deadline = DEADLINE) {
    this.#module = module;
    this.deadline = deadline;
    this.#start();
  }

  /** Downloads and compiles the engine. */
  static async load(url) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: HTTP status ${response.status}`);
    const isWasm = response.headers.get('content-type') === 'application/wasm';
    return isWasm
      ? WebAssembly.compileStreaming(response)
      : WebAssembly.compile(await response.arrayBuffer());
  }

  /** Calls a function, and returns its parsed result. A call replaces pending calls of the same function. */
  call(name, input) {
    return new Promise((resolve, reject) => {
      const call = { id: this.#next++, name, input: typeof input === 'string' ? input : JSON.stringify(input), resolve, reject };
      const isReplaced = (other) => other.name === name && name !== 'yaml';
      for (const other of this.#pending.filter(isReplaced)) {
        other.reject(new EngineError('superseded', 'a newer call replaces this one'));
      }
      this.#pending = [...this.#pending.filter((other) => !isReplaced(other)), call];
      const running = this.#running;
      if (running && isReplaced(running) && performance.now() - running.start > SUPERSEDE) {
        this.#end(new EngineError('superseded', 'a newer call replaces this one'));
      }
      this.#send();
    });
  }

  #start() {
    const worker = new Worker('worker.js', { name: 'engine' });
    worker.onmessage = ({ data }) => this.#receive(worker, data);
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.#end(new EngineError('trap', event.message));
    };
    worker.postMessage({ module: this.#module });
    this.#worker = worker;
  }

  #receive(worker, { id, result, trap }) {
    const running = this.#running;
    if (worker !== this.#worker || !running || running.id !== id) return;
    if (trap !== undefined) {
      this.#end(new EngineError('trap', trap));
      return;
    }
    this.#finish();
    const value = JSON.parse(result);
    if (value && value.error !== undefined && Object.keys(value).length === 1) {
      running.reject(new EngineError('input', value.error));
    } else {
      running.resolve(value);
    }
    this.#send();
  }

  #send() {
    if (this.#running || this.#pending.length === 0) return;
    const call = this.#pending.shift();
    call.start = performance.now();
    call.timer = setTimeout(() => {
      const seconds = Math.round(this.deadline / 1_000);
      this.#end(new EngineError('deadline', `stopped after ${seconds} s: shorten or split the policies`));
    }, this.deadline);
    this.#running = call;
    this.#worker.postMessage({ id: call.id, name: call.name, input: call.input });
  }

  #finish() {
    clearTimeout(this.#running.timer);
    this.#running = undefined;
  }

  /** Ends the worker, and with it the running call. */
  #end(error) {
    const running = this.#running;
    this.#worker.terminate();
    if (running) this.#finish();
    this.#start();
    running?.reject(error);
    this.#send();
  }
}
