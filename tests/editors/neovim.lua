-- A session of Neovim with the language server: opens a policy, and checks the result of each feature.
--
-- Run it with `nvim --headless --clean -l` or, before Neovim 0.9, `nvim --headless --clean -u NONE -S`, in an empty
-- directory. The variable KUBECTL_VAP is the path of the program.

local program = os.getenv('KUBECTL_VAP') or 'kubectl-vap'

local POLICY = {
  'apiVersion: admissionregistration.k8s.io/v1',
  'kind: ValidatingAdmissionPolicy',
  'metadata: {name: limit.example.com}',
  'spec:',
  '  matchConstraints:',
  '    resourceRules:',
  '    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}',
  '  variables:',
  "  - {name: max, expression: '50'}",
  '  validations:',
  '  - expression: object.spec.replcas <= variables.max',
}

local function fail(message)
  io.stderr:write('FAILED: ' .. message .. '\n')
  vim.cmd('cquit 1')
end

local function check(holds, message)
  if not holds then
    fail(message)
  end
end

local function session()
  local directory = vim.fn.getcwd()
  local path = directory .. '/policy.yaml'
  vim.fn.writefile(POLICY, path)
  vim.cmd('edit ' .. vim.fn.fnameescape(path))
  vim.bo.filetype = 'yaml'
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.start_client({ name = 'vap', cmd = { program, 'lsp' }, root_dir = directory })
  check(client, 'the server does not start')
  vim.lsp.buf_attach_client(buffer, client)

  local function diagnostics(code)
    return vim.tbl_filter(function(found)
      return found.code == code
    end, vim.diagnostic.get(buffer))
  end
  local function wait(condition, message)
    check(vim.wait(20000, condition, 20), message)
  end
  local function request(method, line, column, more)
    local params = vim.tbl_extend('force', {
      textDocument = { uri = vim.uri_from_bufnr(buffer) },
      position = { line = line, character = column },
    }, more or {})
    local responses = vim.lsp.buf_request_sync(buffer, method, params, 20000)
    local response = responses and responses[client]
    check(response and not response.error, method .. ': ' .. vim.inspect(responses))
    return response.result
  end

  wait(function()
    return #diagnostics('undefined-field') == 1
  end, 'diagnostics of the opened file')

  local range = { start = { line = 10, character = 0 }, ['end'] = { line = 10, character = 60 } }
  local actions = request('textDocument/codeAction', 10, 0, { range = range, context = { diagnostics = {} } })
  check(actions[1].title == 'replace `replcas` with `replicas`', vim.inspect(actions))
  vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
  local line = vim.api.nvim_buf_get_lines(buffer, 10, 11, false)[1]
  check(line == '  - expression: object.spec.replicas <= variables.max', line)
  wait(function()
    return #diagnostics('undefined-field') == 0
  end, 'diagnostics of the unsaved change')

  local hover = request('textDocument/hover', 10, 30)
  check(hover.contents.value:find('object.spec.replicas: int', 1, true), vim.inspect(hover))
  local list = request('textDocument/completion', 10, 28)
  check(#list.items > 5, vim.inspect(list))
  local definition = request('textDocument/definition', 10, 52)
  check(definition[1].range.start.line == 8, vim.inspect(definition))
  local edit = request('textDocument/rename', 10, 52, { newName = 'limit' })
  vim.lsp.util.apply_workspace_edit(edit, 'utf-16')
  line = vim.api.nvim_buf_get_lines(buffer, 10, 11, false)[1]
  check(line == '  - expression: object.spec.replicas <= variables.limit', line)
  local symbols = request('textDocument/documentSymbol', 0, 0)
  check(symbols[1].children[1].name == 'limit', vim.inspect(symbols))
  local tokens = request('textDocument/semanticTokens/full', 0, 0)
  check(#tokens.data > 20, vim.inspect(tokens))

  vim.api.nvim_buf_set_lines(buffer, 10, 11, false, { '  - expression: object.spec.' })
  wait(function()
    return #diagnostics('syntax') == 1
  end, 'diagnostics of an unfinished expression')
  list = request('textDocument/completion', 10, 28)
  check(#list.items > 5, 'completion of an unfinished expression')

  vim.lsp.stop_client(client)
  wait(function()
    return vim.lsp.client_is_stopped(client)
  end, 'the server does not stop')
  io.stdout:write('Neovim: all features have the expected result\n')
  vim.cmd('qall!')
end

local ok, message = pcall(session)
if not ok then
  fail(message)
end
